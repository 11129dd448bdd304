//! What a crossing costs: acquire and release of a free lock, by the C functions and by this crate, in turns, in one
//! process.
//!
//!     cargo run --release --features bundled --example bench -- URL [ROUNDS [PAIRS]]
use std::ffi::CString;
use std::ptr;
use std::time::{Duration, Instant};

use holdfast_sys as sys;

fn processor() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it fills in the structure.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let of = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

fn by_c(client: *mut sys::hf_client, pairs: u32) {
    for _ in 0..pairs {
        let mut lock = ptr::null_mut();
        // SAFETY: the client is open; each lock is released once.
        unsafe {
            assert_eq!(sys::hf_acquire(client, c"bench".as_ptr(), 5, ptr::null(), &mut lock, ptr::null_mut()), 0);
            assert_eq!(sys::hf_lock_release(lock, ptr::null_mut()), 0);
        }
    }
}

fn median(samples: &mut [Duration]) -> f64 {
    samples.sort();
    samples[samples.len() / 2].as_nanos() as f64 / 1000.0
}

fn main() -> holdfast::Result<()> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "memory://bench".into());
    let mut number = |preset| words.next().and_then(|word| word.parse().ok()).unwrap_or(preset);
    let (rounds, pairs): (u32, u32) = (number(25), number(1000));
    let c_url = CString::new(url.as_str()).expect("a URL without a NUL");
    let mut client = ptr::null_mut();
    // SAFETY: as the header says.
    assert_eq!(unsafe { sys::hf_open(c_url.as_ptr(), ptr::null(), &mut client, ptr::null_mut()) }, 0);
    let locks = holdfast::open(&url)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    type Run<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let runs: [Run<'_>; 3] = [
        ("C", Box::new(|| by_c(client, pairs))),
        (
            "Rust",
            Box::new(|| {
                for _ in 0..pairs {
                    locks.lock("bench").acquire().and_then(holdfast::Held::release).expect("a free lock");
                }
            }),
        ),
        (
            "Rust, async",
            Box::new(|| {
                runtime.block_on(async {
                    for _ in 0..pairs {
                        let held = locks.lock("bench").acquire_async().await.expect("a free lock");
                        held.release_async().await.expect("a lock that is held");
                    }
                });
            }),
        ),
    ];
    let mut samples = [const { (Vec::new(), Vec::new()) }; 3];
    for round in 0..=rounds as usize {
        for turn in (0..runs.len()).map(|i| (i + round) % runs.len()) {
            let (wall, cpu) = (Instant::now(), processor());
            runs[turn].1();
            if round > 0 {
                samples[turn].0.push(wall.elapsed() / pairs);
                samples[turn].1.push((processor() - cpu) / pairs);
            }
        }
    }
    println!("| {url} | us | ratio | processor us | ratio |\n|---|---:|---:|---:|---:|");
    let medians = samples.map(|(mut wall, mut cpu)| (median(&mut wall), median(&mut cpu)));
    for ((name, _), (wall, cpu)) in runs.iter().zip(medians) {
        println!("| {name} | {wall:.2} | {:.2} | {cpu:.2} | {:.2} |", wall / medians[0].0, cpu / medians[0].1);
    }
    // SAFETY: its last use.
    unsafe { sys::hf_close(client) };
    Ok(())
}
