// What a user of the crates does: program DIRECTORY.
use std::time::Duration;

fn main() -> holdfast::Result<()> {
    let folder = std::env::args().nth(1).expect("a directory");
    let locks = holdfast::open(&format!("sqlite:{folder}/locks.db"))?;
    let held = locks.lock("a").acquire()?;
    let second = locks.lock("a").timeout(Duration::ZERO).acquire();
    assert!(second.is_err_and(|e| e.code() == holdfast::Code::Busy));
    println!("# Rust, token {}", held.token()?);
    held.release()
}
