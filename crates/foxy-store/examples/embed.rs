//! Counts in a store how many times the program was started. After its message, kill the program
//! with `kill -9` and start it again: the count has survived. Run it with `cargo run --example
//! embed -p foxy-store -- FOLDER`.
#![expect(clippy::print_stdout, reason = "an example speaks to its user")]

use foxy_store::{Key, Record, Store};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed FOLDER")?;
    let (store, key) = (Store::open(folder, 64 << 20)?, Key::of(b"starts"));
    let starts = store.get(key).wait().map_or(0, |record| record.body.len()) + 1;
    store.put(key, Record { body: vec![b'|'; starts].into(), ..Record::default() }).wait()?;
    // Wait, because a kill may lose the puts of about the last second.
    std::thread::sleep(Duration::from_millis(1500));
    println!("start {starts}");
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}
