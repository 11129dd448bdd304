//! What users do to it.
use super::*;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

pub const ATTACKS: &[(&str, fn())] = &[
    ("futures_are_dropped_at_every_moment", futures_are_dropped_at_every_moment),
    ("a_client_is_closed_at_every_moment", a_client_is_closed_at_every_moment),
    ("waits_are_cancelled_at_every_moment", waits_are_cancelled_at_every_moment),
    ("a_drop_gives_back_and_waits_for_nothing", a_drop_gives_back_and_waits_for_nothing),
    ("an_owner_enters_again_and_others_do_not", an_owner_enters_again_and_others_do_not),
    ("a_runtime_that_ends_leaves_nothing", a_runtime_that_ends_leaves_nothing),
    ("what_is_started_inherits_nothing", what_is_started_inherits_nothing),
    ("bad_input_gets_one_sentence", bad_input_gets_one_sentence),
    ("all_of_it_is_send_and_sync", all_of_it_is_send_and_sync),
];

/// Moments that differ, and are the same in every run.
fn moments() -> impl FnMut(u64) -> Duration {
    let mut state = 1u64;
    move |most_us| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        Duration::from_micros((state >> 33) % most_us)
    }
}

fn futures_are_dropped_at_every_moment() {
    let (c, name) = (client(), lock_name("futures_are_dropped"));
    let inside = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut moment = moments();
    let tasks: Vec<_> = (0..600)
        .map(|_| {
            let (bid, inside, limit) = (c.lock(&name).acquire_async(), inside.clone(), moment(20000));
            let turn = async move {
                let held = bid.await.unwrap();
                assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                inside.store(false, Ordering::SeqCst);
                held.release_async().await.unwrap();
            };
            runtime.spawn(async move { tokio::time::timeout(limit, turn).await })
        })
        .collect();
    for task in tasks {
        let _out_of_time = runtime.block_on(task).unwrap();
    }
    until("nothing is left", || entries(&c, &name).is_empty());
    c.lock(&name).try_acquire().unwrap().release().unwrap();
}

fn a_client_is_closed_at_every_moment() {
    let (watcher, name) = (client(), lock_name("a_client_is_closed"));
    let mut moment = moments();
    for _ in 0..25 {
        let (c, pause) = (client(), moment(3000));
        thread::scope(|scope| {
            for number in 0..8 {
                let (c, name) = (c.clone(), &name);
                scope.spawn(move || loop {
                    let lock = c.lock(name);
                    let held = if number % 2 == 0 { lock.acquire() } else { block_on(lock.acquire_async()) };
                    let result = held.and_then(|held| {
                        held.state();
                        let _lost = held.lost();
                        let _may_be_over = held.renew();
                        if number % 3 == 0 {
                            held.release()
                        } else {
                            block_on(held.release_async())
                        }
                    });
                    match result {
                        Err(error) if error.code() == Code::Closed => return,
                        Err(error) if error.code() != Code::Stale => panic!("{error}"),
                        _ => {}
                    }
                });
            }
            thread::sleep(pause);
            c.close();
        });
    }
    assert_eq!(entries(&watcher, &name).len(), 0);
}

fn waits_are_cancelled_at_every_moment() {
    let (c, name) = (client(), lock_name("waits_are_cancelled"));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut moment = moments();
                for _ in 0..40 {
                    let (cancel, pause) = (Cancel::new(), moment(2000));
                    thread::scope(|inner| {
                        inner.spawn(|| {
                            thread::sleep(pause);
                            cancel.fire();
                        });
                        match c.lock(&name).cancel(&cancel).acquire() {
                            Ok(held) => held.release().unwrap(),
                            Err(error) => assert_eq!(error.code(), Code::Cancelled, "{error}"),
                        }
                    });
                }
            });
        }
    });
    assert_eq!(entries(&c, &name).len(), 0);
}

fn a_drop_gives_back_and_waits_for_nothing() {
    let (c, name) = (client(), lock_name("a_drop_gives_back"));
    for _ in 0..200 {
        drop(c.lock(&name).acquire().unwrap());
    }
    until("nothing is left", || entries(&c, &name).is_empty());
    let held = c.lock(&name).acquire().unwrap();
    drop(c); // the lock keeps the client
    assert_eq!(held.state(), State::Held);
    drop(held); // and the last of them closes it
    assert_eq!(entries(&client(), &name).len(), 0);
}

fn an_owner_enters_again_and_others_do_not() {
    let (c, name, owner) = (client(), lock_name("an_owner_enters_again"), Owner::new());
    let lock = c.lock(&name).reentrant(owner).ttl(Duration::from_millis(300)).by_hand();
    let outer = lock.acquire().unwrap();
    let inner = block_on(lock.acquire_async()).unwrap();
    assert_eq!(inner.token().unwrap_or(0), outer.token().unwrap_or(0));
    refused(c.lock(&name).try_acquire(), Code::Busy); // this thread, but another owner
    refused(c.lock(&name).reentrant(Owner::new()).try_acquire(), Code::Busy);
    outer.release().unwrap(); // counts down
    assert_eq!(inner.wait_lost(Duration::from_secs(20)), Some(Cause::Expired));
    refused(inner.release(), Code::Stale);
}

fn a_runtime_that_ends_leaves_nothing() {
    let (c, name) = (client(), lock_name("a_runtime_that_ends"));
    let held = c.lock(&name).acquire().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    for _ in 0..20 {
        runtime.spawn(c.lock(&name).acquire_async());
    }
    until_waiting(&c, &name, 20);
    drop(runtime);
    until("withdrawal", || entries(&c, &name).len() == 1);
    let next = block_on(async {
        let bid = tokio::spawn(c.lock(&name).acquire_async());
        held.release_async().await.unwrap();
        bid.await.unwrap().unwrap()
    });
    next.release().unwrap(); // what one runtime has acquired serves without it
}

fn what_is_started_inherits_nothing() {
    let (c, name) = (client(), lock_name("what_is_started"));
    let held = c.lock(&name).acquire().unwrap();
    let _lost = held.lost();
    let listed = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(!listed.contains("eventfd") && !listed.contains("locks.db"), "{listed}");
}

fn bad_input_gets_one_sentence() {
    let c = client();
    for (result, sentence) in [
        (open("memory://a\0b").map(drop), "the URL must not contain a NUL"),
        (open("nosuch://x").map(drop), "nosuch"),
        (c.lock("x").note("a\0b").acquire().map(drop), "the note must not contain a NUL"),
        (c.lock("x").note(&"n".repeat(300)).acquire().map(drop), "the note is too long"),
        (c.lock("x").ttl(Duration::from_millis(1)).acquire().map(drop), "the ttl must be"),
        (c.lock("x").ttl(Duration::MAX).acquire().map(drop), "the ttl must be"),
        (c.break_lock("x", "no ticket", true), "ticket"),
    ] {
        let said = result.expect_err(sentence).to_string();
        assert!(said.contains(sentence) && !said.contains('\n'), "{said}");
    }
    assert!(stores().unwrap().len() > 1);
    assert!(!c.diagnose().unwrap().is_empty());
    c.setup().unwrap();
    c.purge(Duration::from_secs(3600)).unwrap();
    assert_eq!(Capabilities(capability::SHARE | capability::TOKEN).to_string(), "shared token");
}

fn all_of_it_is_send_and_sync() {
    fn is<T: Send + Sync + 'static>() {}
    fn sends<T: Send + 'static>(_: T) {}
    is::<Client>();
    is::<Lock>();
    is::<Held>();
    is::<Lost>();
    is::<Gate>();
    is::<Cancel>();
    is::<Error>();
    sends(client().lock("x").acquire_async());
}
