//! Prints a fixture: the store file of a storage scheme in the current disk format, as text. Run
//! this example before a change of the format, and save the output in tests/fixtures. Then a test
//! can open a store of the old format:
//!
//! `cargo run -p foxy-schemes --example fixture -- webcosm`
//!
//! The first line of the output is `file NAME BYTES`. Each group of 64 bytes that are not all zero
//! then has a line with its offset and its bytes, both in hexadecimal.

#[path = "../tests/fixtures/script.rs"]
mod script;

use foxy_device::{Memory, StorePath};
use foxy_schemes::SchemeName;
use foxy_store::{Answer, PlacementHint, StepDriver};
use script::{KEYS, name, open, record, version};
use std::fmt::Write;
use std::time::Duration;

const LINE: usize = 64;

/// Creates, fills and closes a store, then opens it again. Replaces and removes some records, and
/// adds more. Then stops without a close, as after a crash. Returns the device with the store's
/// file.
fn make(scheme: SchemeName) -> Memory {
    let (mut driver, _) = open(scheme, Memory::default());
    let put = |driver: &mut StepDriver<Memory>, key, version| {
        let answer = driver.put(name(key), record(key, version), PlacementHint::default());
        assert_eq!(answer, Answer::Stored, "{key}");
    };
    (0..KEYS - 4).for_each(|key| put(&mut driver, key, 1));
    assert_eq!(driver.close(), Answer::Closed);
    let (mut driver, _) = open(scheme, driver.into_device().fork());
    (0..KEYS - 4).filter(|&key| version(key) == Some(2)).for_each(|key| put(&mut driver, key, 2));
    for key in (0..KEYS).filter(|&key| version(key).is_none()) {
        assert_eq!(driver.remove(name(key)), Answer::Removed);
    }
    (KEYS - 4..KEYS)
        .for_each(|key| put(&mut driver, key, version(key).expect("none of these is removed")));
    let later = driver.now() + Duration::from_secs(3);
    driver.run_until(later);
    driver.run_until_idle();
    driver.into_device().fork()
}

fn to_text(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("file {name} {}\n", bytes.len());
    for (number, line) in
        bytes.chunks(LINE).enumerate().filter(|(_, line)| line.iter().any(|&byte| byte != 0))
    {
        write!(text, "{:06x} ", number * LINE).expect("a String takes all");
        line.iter().for_each(|byte| write!(text, "{byte:02x}").expect("a String takes all"));
        text.push('\n');
    }
    text
}

#[expect(clippy::print_stdout, reason = "the text is what it is run for")]
fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let scheme: SchemeName = wanted.parse().expect("the name of a scheme");
    let name = scheme.row().control.expect("a scheme of one file");
    let bytes = make(scheme).content(&StorePath::new(name)).expect("it was made");
    print!("{}", to_text(name, &bytes));
}
