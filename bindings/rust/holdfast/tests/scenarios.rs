//! The scenarios of bindings/scenarios.md, and attacks, on the store of HOLDFAST_TEST_URL.
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use holdfast::*;

mod attacks;

/// Why a scenario is skipped; it unwinds with this.
struct Skip(String);

fn main() {
    if let Ok(role) = std::env::var("HOLDFAST_TEST_ROLE") {
        return play(&role);
    }
    let scenarios: &[(&str, fn())] = &[
        ("exclusion_between_processes", exclusion_between_processes),
        ("busy_without_waiting", busy_without_waiting),
        ("timeout_leaves_nothing", timeout_leaves_nothing),
        ("cancelled_wait_leaves_nothing", cancelled_wait_leaves_nothing),
        ("waiters_come_in_order", waiters_come_in_order),
        ("readers_share_and_a_writer_waits", readers_share_and_a_writer_waits),
        ("limit_admits_no_more", limit_admits_no_more),
        ("loss_is_told", loss_is_told),
        ("token_rises", token_rises),
        ("gate_refuses_an_old_sequencer", gate_refuses_an_old_sequencer),
        ("check_tells_a_stale_sequencer", check_tells_a_stale_sequencer),
        ("inspect_shows_holder_and_waiter", inspect_shows_holder_and_waiter),
        ("break_takes_it_away", break_takes_it_away),
        ("detach_and_adopt", detach_and_adopt),
        ("never_expires_until_released", never_expires_until_released),
        ("close_wakes_waiters", close_wakes_waiters),
        ("exit_gives_locks_back", exit_gives_locks_back),
        ("ended_handles_are_refused", ended_handles_are_refused),
        ("a_thousand_waiters_in_twenty_threads", a_thousand_waiters_in_twenty_threads),
        ("every_code_is_mapped_and_names_hold_any_byte", every_code_is_mapped_and_names_hold_any_byte),
    ];
    let store = url().split(':').next().unwrap_or_default().to_owned();
    let only = std::env::args().nth(1).filter(|word| !word.starts_with('-'));
    let mut status = 0;
    for (name, run) in scenarios.iter().chain(attacks::ATTACKS) {
        if only.as_ref().is_some_and(|word| !name.contains(word)) {
            continue;
        }
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(()) => println!("ok - rust {store}: {name}"),
            Err(reason) => match reason.downcast_ref::<Skip>() {
                Some(Skip(why)) => println!("skipped - rust {store}: {name}: {why}"),
                None => {
                    println!("not ok - rust {store}: {name}");
                    status = 1;
                }
            },
        }
    }
    std::process::exit(status);
}

fn url() -> String {
    std::env::var("HOLDFAST_TEST_URL").unwrap_or_else(|_| "memory://rust".into())
}

fn client() -> Client {
    open(&url()).unwrap()
}

/// A lock that no earlier run has left behind.
fn lock_name(scenario: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    format!("{scenario}/{}{:x}", std::process::id(), now.as_nanos())
}

fn needs(c: &Client, bits: u32) {
    if !c.capabilities().contains(bits) {
        let missing = Capabilities(bits & !c.capabilities().0);
        std::panic::resume_unwind(Box::new(Skip(format!("this store has no: {missing}"))));
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T>, code: Code) {
    let error = result.expect_err("it should be refused");
    assert_eq!(error.code(), code, "{error}");
    assert!(!error.to_string().is_empty() && !error.to_string().contains('\n'));
}

fn entries(c: &Client, name: &str) -> Vec<Entry> {
    c.inspect(&Query::name(name)).unwrap()
}

/// Polls for what no event tells, with a deadline.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < end, "{what}: not within 20 s");
        thread::sleep(Duration::from_millis(2));
    }
}

fn until_waiting(c: &Client, name: &str, count: usize) {
    until("waiters", || entries(c, name).iter().filter(|e| e.place == Place::Waiting).count() == count);
}

fn block_on<F: std::future::Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// This program again, in another role.
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Other {
    fn start(role: &str, name: &str) -> Other {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env("HOLDFAST_TEST_ROLE", role)
            .env("HOLDFAST_TEST_NAME", name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Other { child, said }
    }

    fn says(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn tell(word: &str) {
    println!("{word}");
    std::io::stdout().flush().unwrap();
}

fn play(role: &str) {
    let name = std::env::var("HOLDFAST_TEST_NAME").unwrap();
    if role == "crowd" {
        return crowd(&name);
    }
    let c = client();
    if role == "try" {
        match c.lock(&name).try_acquire() {
            Err(error) => tell(error.code().name()),
            Ok(_) => tell("held"),
        }
    }
    let held = c.lock(&name).ttl(Duration::from_secs(600)).acquire().unwrap();
    tell("held");
    match role {
        "try" => {
            std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
            held.release().unwrap();
        }
        "exit" => {
            std::mem::forget(held);
            close_all();
            std::process::exit(0);
        }
        _ => {} // both are dropped at the end of main
    }
}

fn exclusion_between_processes() {
    let (c, name) = (client(), lock_name("exclusion_between_processes"));
    needs(&c, capability::PROCESS);
    let held = c.lock(&name).acquire().unwrap();
    let mut other = Other::start("try", &name);
    other.says("HF_BUSY");
    until_waiting(&c, &name, 1);
    held.release().unwrap();
    other.says("held");
    refused(c.lock(&name).try_acquire(), Code::Busy);
    other.end();
    c.lock(&name).try_acquire().unwrap().release().unwrap();
}

fn busy_without_waiting() {
    let (a, b, name) = (client(), client(), lock_name("busy_without_waiting"));
    let held = a.lock(&name).acquire().unwrap();
    refused(b.lock(&name).timeout(Duration::ZERO).acquire(), Code::Busy);
    refused(block_on(b.lock(&name).timeout(Duration::ZERO).acquire_async()), Code::Busy);
    let found = entries(&b, &name);
    assert!(found.len() == 1 && found[0].ticket == held.ticket());
}

fn timeout_leaves_nothing() {
    let (a, b, name) = (client(), client(), lock_name("timeout_leaves_nothing"));
    let held = a.lock(&name).acquire().unwrap();
    let late = b.lock(&name).timeout(Duration::from_millis(200));
    refused(late.acquire(), Code::Timeout);
    refused(block_on(late.acquire_async()), Code::Timeout);
    assert_eq!(entries(&a, &name).len(), 1);
    held.release().unwrap();
    b.lock(&name).try_acquire().unwrap().release().unwrap();
}

fn cancelled_wait_leaves_nothing() {
    let (a, b, name) = (client(), client(), lock_name("cancelled_wait_leaves_nothing"));
    let held = a.lock(&name).acquire().unwrap();
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| b.lock(&name).cancel(&cancel).acquire());
        until_waiting(&a, &name, 1);
        cancel.fire();
        refused(waiter.join().unwrap(), Code::Cancelled);
    });
    assert_eq!(entries(&a, &name).len(), 1);
    refused(b.lock(&name).cancel(&cancel).acquire(), Code::Cancelled);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let task = runtime.spawn(b.lock(&name).acquire_async()); // a future that is dropped
    until_waiting(&a, &name, 1);
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    until("withdrawal", || entries(&a, &name).len() == 1);
    held.release().unwrap();
    b.lock(&name).try_acquire().unwrap().release().unwrap();
}

fn waiters_come_in_order() {
    let (c, name) = (client(), lock_name("waiters_come_in_order"));
    needs(&c, capability::QUEUE);
    let held = c.lock(&name).acquire().unwrap();
    let (come, came) = mpsc::channel();
    thread::scope(|scope| {
        for number in 1..=5 {
            let (c, name, come) = (&c, &name, come.clone());
            scope.spawn(move || {
                let held = c.lock(name).acquire().unwrap();
                come.send(number).unwrap();
                held.release().unwrap();
            });
            until_waiting(c, name, number);
        }
        held.release().unwrap();
    });
    assert_eq!(came.try_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

fn readers_share_and_a_writer_waits() {
    let (c, name) = (client(), lock_name("readers_share_and_a_writer_waits"));
    needs(&c, capability::SHARE);
    let (one, two) = (c.lock(&name).shared().acquire().unwrap(), c.lock(&name).shared().acquire().unwrap());
    refused(c.lock(&name).try_acquire(), Code::Busy);
    thread::scope(|scope| {
        let writer = scope.spawn(|| c.lock(&name).acquire().unwrap().release());
        until_waiting(&c, &name, 1);
        refused(c.lock(&name).shared().try_acquire(), Code::Busy);
        one.release().unwrap();
        two.release().unwrap();
        writer.join().unwrap().unwrap();
    });
}

fn limit_admits_no_more() {
    let (c, name) = (client(), lock_name("limit_admits_no_more"));
    needs(&c, capability::LIMIT);
    let lock = c.lock(&name).limit(2);
    let (one, _two) = (lock.acquire().unwrap(), lock.acquire().unwrap());
    refused(lock.try_acquire(), Code::Busy);
    one.release().unwrap();
    lock.try_acquire().unwrap().release().unwrap();
}

fn loss_is_told() {
    let (c, name) = (client(), lock_name("loss_is_told"));
    needs(&c, capability::LEASE);
    let lock = c.lock(&name).ttl(Duration::from_millis(300)).by_hand();
    let held = lock.acquire().unwrap();
    assert_eq!((held.state(), held.cause()), (State::Held, None));
    assert_eq!(block_on(held.lost()), Cause::Expired);
    assert_eq!((held.state(), held.cause(), held.remaining()), (State::Lost, Some(Cause::Expired), Duration::ZERO));
    assert_eq!(held.wait_lost(Duration::ZERO), Some(Cause::Expired));
    refused(held.renew(), Code::Lost);
    refused(held.release(), Code::Stale);
    let held = block_on(lock.acquire_async()).unwrap();
    assert_eq!(held.wait_lost(Duration::from_secs(20)), Some(Cause::Expired));
    refused(block_on(held.release_async()), Code::Stale);
    let held = c.lock(&name).acquire().unwrap();
    assert_eq!(held.wait_lost(Duration::from_millis(10)), None);
    let lost = held.lost();
    drop(held);
    assert_eq!(block_on(lost), Cause::None); // it was given back
}

fn token_rises() {
    let (c, name) = (client(), lock_name("token_rises"));
    needs(&c, capability::TOKEN);
    let tokens: Vec<u64> = (0..3)
        .map(|_| {
            let held = c.lock(&name).acquire().unwrap();
            let token = held.token().unwrap();
            held.release().unwrap();
            token
        })
        .collect();
    assert!(tokens[0] < tokens[1] && tokens[1] < tokens[2], "{tokens:?}");
}

fn two_sequencers(c: &Client, name: &str) -> [String; 2] {
    [(); 2].map(|()| {
        let held = c.lock(name).acquire().unwrap();
        let sequencer = held.sequencer().unwrap();
        held.release().unwrap();
        sequencer
    })
}

fn gate_refuses_an_old_sequencer() {
    let (c, name) = (client(), lock_name("gate_refuses_an_old_sequencer"));
    needs(&c, capability::TOKEN);
    let [old, new] = two_sequencers(&c, &name);
    let gate = Gate::new().unwrap();
    assert_eq!(gate.levels(&name).unwrap(), None);
    gate.pass(&old).unwrap();
    gate.pass(&new).unwrap();
    refused(gate.pass(&old), Code::Stale);
    refused(gate.pass("nonsense"), Code::Invalid);
    let (exclusive, highest) = gate.levels(&name).unwrap().unwrap();
    let restarted = Gate::new().unwrap();
    restarted.restore(&name, exclusive, highest).unwrap();
    refused(restarted.pass(&old), Code::Stale);
    restarted.pass(&new).unwrap();
}

fn check_tells_a_stale_sequencer() {
    let (c, name) = (client(), lock_name("check_tells_a_stale_sequencer"));
    needs(&c, capability::CHECK);
    let held = c.lock(&name).acquire().unwrap();
    let sequencer = held.sequencer().unwrap();
    c.check(&sequencer).unwrap();
    held.release().unwrap();
    refused(c.check(&sequencer), Code::Stale);
}

fn inspect_shows_holder_and_waiter() {
    let (c, name) = (client(), lock_name("inspect_shows_holder_and_waiter"));
    let named = Options::new().program("rust-test").open(&url()).unwrap();
    let held = named.lock(&name).note("the holder").acquire().unwrap();
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| c.lock(&name).note("the waiter").cancel(&cancel).acquire());
        until_waiting(&c, &name, 1);
        let found = entries(&c, &name);
        let (holder, waiting) = (&found[0], &found[1]);
        assert!(holder.place == Place::Inside && holder.ticket == held.ticket() && holder.note == "the holder");
        assert!(holder.program == "rust-test" && holder.pid == i64::from(std::process::id()));
        assert!(holder.name == name.as_bytes() && holder.ttl == Duration::from_secs(30));
        assert_eq!(holder.token, held.token().unwrap_or(0));
        assert!(waiting.place == Place::Waiting && waiting.note == "the waiter");
        assert!(waiting.position == 1 || !c.capabilities().contains(capability::QUEUE));
        assert_eq!(c.inspect(&Query::prefix(&name[..name.len() - 1])).unwrap().len(), 2);
        cancel.fire();
        refused(waiter.join().unwrap(), Code::Cancelled);
    });
}

fn break_takes_it_away() {
    let (a, b, name) = (client(), client(), lock_name("break_takes_it_away"));
    needs(&a, capability::BREAK);
    let held = a.lock(&name).ttl(Duration::from_secs(1)).acquire().unwrap();
    let ticket = held.ticket().to_owned();
    b.break_lock(&name, &ticket, true).unwrap();
    let next = b.lock(&name).timeout(Duration::from_secs(10)).acquire().unwrap();
    let cause = held.wait_lost(Duration::from_secs(20));
    assert!(matches!(cause, Some(Cause::Gone | Cause::Expired)), "{cause:?}");
    refused(b.break_lock(&name, &ticket, true), Code::NotFound);
    next.release().unwrap();
}

fn detach_and_adopt() {
    let (a, b, name) = (client(), client(), lock_name("detach_and_adopt"));
    needs(&a, capability::DETACH);
    let held = a.lock(&name).acquire().unwrap();
    let token = held.token().unwrap_or(0);
    let ticket = held.detach().unwrap();
    assert_eq!(entries(&b, &name).len(), 1);
    let adopted = b.lock(&name).adopt(&ticket).unwrap();
    assert_eq!((adopted.token().unwrap_or(0), adopted.ticket()), (token, &*ticket));
    adopted.release().unwrap();
    assert_eq!(entries(&b, &name).len(), 0);
    refused(b.lock(&name).adopt(&ticket), Code::Stale);
    if b.capabilities().contains(capability::BREAK) {
        let held = a.lock(&name).ttl(Duration::from_secs(1)).acquire().unwrap();
        let ticket = held.detach().unwrap();
        let adopted = b.lock(&name).adopt(&ticket).unwrap();
        a.break_lock(&name, &ticket, true).unwrap(); // what was adopted tells its loss, too
        assert!(adopted.wait_lost(Duration::from_secs(20)).is_some());
    }
}

fn never_expires_until_released() {
    let (c, name) = (client(), lock_name("never_expires_until_released"));
    needs(&c, capability::NEVER);
    let held = c.lock(&name).never_expires().acquire().unwrap();
    assert_eq!((held.remaining(), entries(&c, &name)[0].ttl), (Duration::MAX, Duration::MAX));
    held.release().unwrap();
    assert_eq!(entries(&c, &name).len(), 0);
}

fn close_wakes_waiters() {
    let (a, b, third, name) = (client(), client(), client(), lock_name("close_wakes_waiters"));
    let held = a.lock(&name).acquire().unwrap();
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| b.lock(&name).acquire())).collect();
        let tasks = scope.spawn(|| block_on(b.lock(&name).acquire_async()));
        until_waiting(&third, &name, 4);
        b.close();
        waiters.into_iter().chain([tasks]).for_each(|waiter| refused(waiter.join().unwrap(), Code::Closed));
    });
    assert_eq!(entries(&third, &name).len(), 1);
    let lost = held.lost();
    a.close();
    assert_eq!(block_on(lost), Cause::Closed);
    third.lock(&name).try_acquire().unwrap().release().unwrap();
    refused(held.release(), Code::Closed);
}

fn exit_gives_locks_back() {
    let (c, name) = (client(), lock_name("exit_gives_locks_back"));
    needs(&c, capability::PROCESS);
    for role in ["leave", "exit"] {
        let mut other = Other::start(role, &name);
        other.says("held");
        other.end();
        c.lock(&name).timeout(Duration::from_secs(5)).acquire().unwrap().release().unwrap();
    }
}

fn ended_handles_are_refused() {
    let (c, other, name) = (client(), client(), lock_name("ended_handles_are_refused"));
    // What was released cannot be named any more: a doc test of `Held` shows that it does not compile.
    let closed = other.lock(&name).acquire().unwrap();
    other.close();
    let lost = c.lock(&name).ttl(Duration::from_millis(200)).by_hand().acquire().unwrap();
    lost.wait_lost(Duration::from_secs(20)).unwrap();
    for _ in 0..2 {
        refused(other.lock(&name).acquire(), Code::Closed);
        refused(block_on(other.lock(&name).acquire_async()), Code::Closed);
        refused(other.inspect(&Query::default()), Code::Closed);
        other.close();
        for (held, code) in [(&closed, Code::Closed), (&lost, Code::Lost)] {
            refused(held.token(), code);
            refused(held.sequencer(), code);
            refused(held.renew(), code);
            assert_eq!((held.state(), held.remaining()), (State::Lost, Duration::ZERO));
        }
    }
    let failed = lost.detach().unwrap_err();
    assert_eq!(failed.error.code(), Code::Lost);
    refused(failed.held.release(), Code::Stale);
    refused(block_on(closed.release_async()), Code::Closed);

    let held = c.lock(&name).acquire().unwrap();
    let _lost = held.lost(); // a thread takes events now: the child has none, and must not end the parent's
                             // SAFETY: the child calls nothing that another thread of the parent may have held a lock of but the library.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let is = |result: Option<Error>, code| result.is_some_and(|error| error.code() == code);
        let well = is(held.token().err(), Code::Forked)
            && is(c.lock(&name).acquire().err(), Code::Forked)
            && is(c.inspect(&Query::default()).err(), Code::Forked)
            && held.state() == State::Lost
            && is(held.release().err(), Code::Forked);
        drop(c);
        // SAFETY: nothing of the parent's is run.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    assert_eq!(held.state(), State::Held);
    refused(c.lock(&name).timeout(Duration::from_millis(50)).acquire(), Code::Timeout); // events are taken still
    held.release().unwrap();
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn a_thousand_waiters_in_twenty_threads() {
    let name = lock_name("a_thousand_waiters_in_twenty_threads");
    let mut other = Other::start("crowd", &name); // a process without threads of other tests
    other.says("done");
    other.end();
}

fn crowd(name: &str) {
    const CROWD: usize = 1000;
    let c = client();
    let held = c.lock(name).acquire().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let mut tasks: Vec<_> = (0..CROWD)
        .map(|_| {
            let bid = c.lock(name).acquire_async();
            runtime.spawn(async move {
                let held = bid.await.unwrap();
                TURNS.fetch_add(1, Ordering::Relaxed);
                held.release_async().await.unwrap();
            })
        })
        .collect();
    until_waiting(&c, name, CROWD);
    let waiting = threads();
    tasks.drain(..CROWD / 2).for_each(|task| task.abort());
    until_waiting(&c, name, CROWD / 2);
    held.release().unwrap();
    tasks.into_iter().for_each(|task| runtime.block_on(task).unwrap());
    let after = threads();
    assert!(waiting <= 20 && after <= 20, "{waiting} threads while they waited, {after} at the end");
    assert_eq!((TURNS.load(Ordering::Relaxed), entries(&c, name).len()), (CROWD / 2, 0));
    tell("done");
}

fn every_code_is_mapped_and_names_hold_any_byte() {
    let said = |s: *const std::ffi::c_char| {
        // SAFETY: static texts of the library.
        unsafe { std::ffi::CStr::from_ptr(s) }.to_str().unwrap()
    };
    let mut names = HashSet::new();
    for code in CODES {
        let value = code as i32;
        // SAFETY: they take any number.
        unsafe {
            assert_eq!(code.name(), said(holdfast_sys::hf_code_name(value)));
            assert_eq!(code.text(), said(holdfast_sys::hf_code_text(value)));
            assert_eq!(code.exit_status(), holdfast_sys::hf_code_exit_status(value));
        }
        assert_eq!(Code::from_value(value), Some(code));
        assert!(names.insert(code.name()));
    }
    let next = -(CODES.len() as i32) - 1;
    // SAFETY: as above.
    unsafe { assert_eq!(said(holdfast_sys::hf_code_name(next)), said(holdfast_sys::hf_code_name(-9999))) };
    let (c, name) = (client(), lock_name("every_code_is_mapped"));
    for odd in [b"a\0b \xff".as_slice(), "Ünïcode 锁".as_bytes()] {
        let name = [odd, name.as_bytes()].concat();
        let held = c.lock(&name).acquire().unwrap();
        assert_eq!((held.name(), &c.inspect(&Query::name(&name)).unwrap()[0].name), (&*name, &name));
        held.release().unwrap();
    }
    refused(c.lock("").acquire(), Code::Invalid);
    refused(c.lock([b'x'; 513]).acquire(), Code::Invalid);
    assert!(version().starts_with("0.1."));
}
