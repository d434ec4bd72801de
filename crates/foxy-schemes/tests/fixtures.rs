//! Opens stores that earlier versions of foxy wrote. The folder `fixtures` contains them as text.
//! Each store must open with its records, or be refused with a named reason.

#[path = "fixtures/script.rs"]
mod script;

use foxy_base::Instant;
use foxy_device::{Device, FileId, IoBuffer, IoId, IoOp, Memory, StorePath};
use foxy_schemes::SchemeName;
use foxy_store::layout::PAGE;
use foxy_store::medium::Medium;
use foxy_store::record::FORMAT_VERSION;
use foxy_store::webcosm::check::{CheckScope, Level, check};
use foxy_store::{Answer, OpenStoreError, StoreStatus};
use script::{KEYS, name, open, record, version};
use xxhash_rust::xxh3::xxh3_64;

/// A store of an earlier program version. `examples/fixture.rs` describes the text.
struct Fixture {
    scheme: SchemeName,
    text: &'static str,
}

const FIXTURES: &[Fixture] = &[
    Fixture { scheme: SchemeName::Webcosm, text: include_str!("fixtures/webcosm-1.txt") },
    Fixture {
        scheme: SchemeName::StreamPacketizer,
        text: include_str!("fixtures/stream-packetizer-1.txt"),
    },
];

/// Returns the name and the bytes of a fixture's file.
fn of_text(text: &str) -> (String, Vec<u8>) {
    let mut lines = text.lines();
    let mut head = lines.next().expect("a first line").split(' ').skip(1);
    let name = head.next().expect("its name").to_owned();
    let mut bytes = vec![0; head.next().expect("its size").parse().expect("a number")];
    for (at, hex) in lines.map(|line| line.split_once(' ').expect("two words")) {
        let at = usize::from_str_radix(at, 16).expect("hexadecimal");
        for (place, pair) in bytes[at..].iter_mut().zip(hex.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            *place = u8::from_str_radix(pair, 16).expect("hexadecimal");
        }
    }
    (name, bytes)
}

fn device(name: &str, bytes: &[u8]) -> Memory {
    let mut device = Memory::default();
    let (file, path) = (FileId(0), StorePath::new(name));
    device.submit(IoId(0), IoOp::Create { file, path, size: bytes.len() as u64 }, Instant::ZERO);
    let buffer = IoBuffer::copy_of(bytes);
    device.submit(IoId(1), IoOp::Write { file, offset: 0, buffer }, Instant::ZERO);
    device.close_all();
    device
}

#[test]
fn a_store_in_an_earlier_format_returns_its_records() {
    for Fixture { scheme, text } in FIXTURES {
        let (file, bytes) = of_text(text);
        let (mut driver, observer) = open(*scheme, device(&file, &bytes));
        assert_eq!(observer.status.get(), StoreStatus::Serving, "{scheme}");
        for key in 0..KEYS {
            let found = driver.get(name(key));
            match version(key) {
                Some(version) => {
                    assert_eq!(found, Answer::Found(record(key, version)), "{scheme}: {key}")
                }
                None => assert!(matches!(found, Answer::Absent(_)), "{scheme}: {key}"),
            }
        }
    }
}

#[test]
fn a_store_of_another_version_is_refused_and_left_as_it_is() {
    let copies: [&[usize]; 3] = [&[0, PAGE], &[0], &[PAGE]];
    for (Fixture { scheme, text }, copies) in
        FIXTURES.iter().flat_map(|one| copies.map(|copies| (one, copies)))
    {
        let (file, mut bytes) = of_text(text);
        for &copy in copies {
            bytes[copy + 8] = 200;
            let checksum = xxh3_64(&bytes[copy..copy + 80]);
            bytes[copy + 80..copy + 88].copy_from_slice(&checksum.to_le_bytes());
        }
        let (driver, observer) = open(*scheme, device(&file, &bytes));
        let other = OpenStoreError::OtherVersion { found: 200, expected: FORMAT_VERSION };
        assert_eq!(observer.status.get(), StoreStatus::Unusable(other), "{scheme}");
        let left = driver.into_device().content(&StorePath::new(file.as_str()));
        assert!(left == Some(bytes), "{scheme}: nothing is written to it");
    }
}

#[test]
fn the_check_finds_no_damage_in_a_store_as_it_was_left() {
    let (_, bytes) = of_text(FIXTURES[0].text);
    let extent = CheckScope { records: true, listed: None };
    let report =
        check(Medium::File, bytes.len() as u64, extent, &mut |offset, buffer: &mut [u8]| {
            let from = usize::try_from(offset).expect("small");
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(buffer.len())
        });
    let report = report.expect("a store");
    assert_eq!(report.findings.count(Level::Damage), 0, "{:?}", report.findings);
    assert_eq!(
        report.live_records(),
        (0..KEYS).filter(|&key| version(key).is_some()).count() as u64
    );
    assert!(report.findings.count(Level::Normal) > 0, "it was killed");
}
