//! Tests the check of a store. An opening serves exactly the records that the check calls live. The
//! check reports no damage after a crash, reports all real damage, and never panics, whatever the
//! file contains.

mod journal;

use super::*;
use crate::contract::{Answer, Key, PlacementHint, Record};
use crate::observe::Observer;
use crate::one_file::medium::Medium;
use crate::record::Secret;
use crate::settings::StoreSettings;
use crate::step::StepDriver;
use crate::webcosm::FILE_NAME;
use crate::webcosm::Webcosm;
use bytes::Bytes;
use foxy_base::{Instant, Random};
use foxy_device::{CrashPolicy, Memory, StorePath};
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64;

const ALL: CheckScope = CheckScope { records: true, listed: None };
const KEYS: u64 = 150;

struct Store {
    driver: StepDriver<Memory>,
    observer: Observer,
}

fn name(key: u64) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.to_le_bytes());
    Key(bytes)
}

impl Store {
    fn open(device: Memory) -> Self {
        let settings =
            StoreSettings { page_buffer: 32 << 10, seed: 7, ..StoreSettings::with_size(1 << 20) };
        let observer = Observer::default();
        let scheme = Webcosm::boxed(&settings, observer.clone());
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        Self { driver, observer }
    }

    /// Puts, replaces and removes random records, with `steps` requests in total.
    fn work(&mut self, steps: u64, random: &mut Random) {
        for _ in 0..steps {
            let key = name(random.below(KEYS));
            if random.below(8) == 0 {
                self.driver.remove(key);
            } else {
                let mut body = vec![0; [90, 400, 2_600, 9_000][random.below(4) as usize]];
                random.fill(&mut body);
                let record = Record { head: Bytes::from_static(b"head"), body: body.into() };
                self.driver.put(key, record, PlacementHint::default());
            }
            if random.below(20) == 0 {
                let later = self.driver.now() + Duration::from_secs(2);
                self.driver.run_until(later);
            }
        }
    }

    fn close(mut self) -> Memory {
        assert_eq!(self.driver.close(), Answer::Closed);
        self.kill()
    }

    fn kill(self) -> Memory {
        let mut device = self.driver.into_device();
        device.close_all();
        device
    }

    fn recovered(&self) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == "recovered").expect("a counter").value
    }

    /// Opens the store and returns the record that a get finds for each key.
    fn served(mut self) -> Vec<Option<Record>> {
        let record = |answer| if let Answer::Found(record) = answer { Some(record) } else { None };
        (0..KEYS).map(|key| record(self.driver.get(name(key)))).collect()
    }
}

/// Returns a store after `steps` random puts, replacements and removals and a clean close, so that
/// everything is durable.
fn settled(seed: u64, steps: u64) -> Memory {
    let mut store = Store::open(Memory::default());
    store.work(steps, &mut Random::new(seed));
    store.close()
}

fn bytes_of(device: &Memory) -> Vec<u8> {
    device.content(&StorePath::new(FILE_NAME)).expect("a store")
}

fn look(bytes: &[u8], extent: CheckScope) -> Result<Report, Refused> {
    check(Medium::File, bytes.len() as u64, extent, &mut |offset, buffer: &mut [u8]| {
        let from = usize::try_from(offset).map_or(bytes.len(), |offset| offset.min(bytes.len()));
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    })
}

fn damaged(report: &Report) -> bool {
    report.findings.count(Level::Damage) > 0
}

#[test]
fn what_it_calls_live_is_what_an_opening_serves_whether_closed_or_killed() {
    let mut random = Random::new(1);
    let mut device = Memory::default();
    for round in 0..40 {
        let mut store = Store::open(device);
        store.work(random.below(120), &mut random);
        device = if round % 3 == 0 { store.close() } else { store.kill() };
        let report = look(&bytes_of(&device), ALL).expect("a store");
        assert!(!damaged(&report), "round {round}: {:?}", report.findings);
        let summaries =
            look(&bytes_of(&device), CheckScope { records: false, listed: None }).expect("a store");
        let back = Store::open(device.fork());
        assert_eq!(
            (report.live_records(), summaries.live_records()),
            (back.recovered(), back.recovered())
        );
    }
}

#[test]
fn what_a_crash_leaves_is_no_damage() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut device = Memory::volatile();
        for _ in 0..4 {
            let mut store = Store::open(device);
            store.work(60 + random.below(60), &mut random);
            device = store.kill();
            device.crash(&CrashPolicy::MIXED, &mut random);
            let Ok(report) = look(&bytes_of(&device), ALL) else { continue };
            assert!(!damaged(&report), "seed {seed}: {:?}", report.findings);
        }
    }
}

#[test]
fn a_flipped_bit_under_a_checksum_is_found_and_where_none_is_found_nothing_is_lost() {
    // The logs have not filled their slots (places for segments) yet, so every byte that is not
    // zero belongs to the current content.
    let device = settled(3, 150);
    let sound = bytes_of(&device);
    let report = look(&sound, ALL).expect("a store");
    assert_eq!(report.findings, Findings::default());
    let other_half = report.geometry.journal[1 - report.superblock.journal_half as usize];
    let other_half =
        other_half.offset() as usize..other_half.offset() as usize + other_half.bytes();
    let free: Vec<_> = report
        .segments
        .iter()
        .filter(|segment| segment.state == SegmentState::Free)
        .map(|s| s.at)
        .collect();
    let served = Store::open(device.fork()).served();
    let mut random = Random::new(4);
    let (mut found, mut harmless) = (0, 0);
    for _ in 0..600 {
        let at = random.below(sound.len() as u64) as usize;
        let mask = 1 << random.below(8);
        let mut bytes = sound.clone();
        bytes[at] ^= mask;
        let counts = sound[at] != 0
            && !other_half.contains(&at)
            && !free
                .iter()
                .any(|&from| (from..from + report.geometry.segment_bytes()).contains(&(at as u64)));
        let what = look(&bytes, ALL).expect("one copy of the superblock is whole");
        assert!(!counts || damaged(&what), "byte {at}");
        if damaged(&what) {
            let near = |finding: &Finding| {
                (finding.at..finding.at + finding.length).contains(&(at as u64))
            };
            let lost = |finding: &Finding| finding.reason == Reason::SummaryLost;
            assert!(
                what.findings.kept.iter().any(|finding| near(finding) || lost(finding)),
                "byte {at}"
            );
            found += 1;
        } else {
            let mut device = device.fork();
            assert!(device.rot(&StorePath::new(FILE_NAME), at as u64, mask));
            assert!(Store::open(device).served() == served, "byte {at}");
            harmless += 1;
        }
    }
    assert!(found > 200 && harmless > 20, "{found} {harmless}");
}

#[test]
fn a_damaged_record_costs_its_own_and_a_damaged_summary_all_that_is_older() {
    let sound = bytes_of(&settled(5, 400));
    let report = look(&sound, ALL).expect("a store");
    let sealed = |report: &Report| {
        let of =
            |state| report.segments.iter().filter(move |segment| segment.state == state).count();
        [of(SegmentState::Sealed), of(SegmentState::Lost), of(SegmentState::GivenUp)]
    };
    let newest =
        report.segments.iter().filter(|s| s.log == LogName::Main).max_by_key(|s| s.sequence);
    let newest = newest.expect("there are segments");
    let end = (newest.at + report.geometry.segment_bytes()) as usize;
    let mut bytes = sound.clone();
    bytes[end - 100] ^= 1;
    let without = look(&bytes, ALL).expect("a store");
    let finding = without.findings.kept[0];
    assert_eq!((finding.reason, finding.slot), (Reason::SummaryLost, Some(newest.slot)));
    assert_eq!(sealed(&without)[1], 1);
    assert_eq!(sealed(&without).iter().sum::<usize>(), sealed(&report)[0]);
    let listed = look(&sound, CheckScope { records: false, listed: Some(newest.slot) })
        .expect("a store")
        .listed;
    let live = listed.iter().find(|record| record.standing == Standing::Live && record.class == 1);
    let live = live.expect("a record on its own");
    let mut bytes = sound;
    bytes[live.at as usize + 70] ^= 1;
    let without = look(&bytes, ALL).expect("a store");
    assert_eq!(without.findings.kept.len(), 1);
    let finding = without.findings.kept[0];
    assert_eq!((finding.reason, finding.at, finding.misses), (Reason::ContentDamaged, live.at, 1));
}

#[test]
fn a_store_that_is_cut_or_blank_or_a_strangers_is_refused_and_never_a_panic() {
    let sound = bytes_of(&settled(6, 400));
    let mut random = Random::new(2);
    for _ in 0..100 {
        let length = 1 + random.below(sound.len() as u64 - 1) as usize;
        let refused = look(&sound[..length], ALL).err();
        assert!(matches!(refused, Some(Refused::Unusable(_))), "{length}: {refused:?}");
    }
    assert_eq!(look(&vec![0; sound.len()], ALL).err(), Some(Refused::Blank));
    let mut headless = sound.clone();
    headless[..2 * PAGE].fill(0);
    assert_eq!(look(&headless, ALL).err(), Some(Refused::Unusable(OpenStoreError::Foreign)));
    assert!(look(&vec![7; sound.len()], ALL).is_err());
    let no_such = look(&sound, CheckScope { records: false, listed: Some(1_000_000) }).err();
    assert!(matches!(no_such, Some(Refused::NoSuchSegment { slot: 1_000_000, .. })));
}

/// Makes the checksum of a page that the test changed correct again. Works for any kind of page.
fn reseal(bytes: &mut [u8], page: usize, secret: &Secret) {
    let page = &mut bytes[page * PAGE..][..PAGE];
    let checksum = if page.starts_with(b"FOXYSTOR") {
        let checksum = xxh3_64(&page[..80]);
        page[80..88].copy_from_slice(&checksum.to_le_bytes());
        return;
    } else {
        secret.checksum(&page[8..])
    };
    page[..8].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn lying_pages_with_sound_checksums_cause_no_panic() {
    let settled = settled(8, 400);
    let sound = bytes_of(&settled);
    let secret = look(&sound, ALL).expect("a store").superblock.secret();
    let written: Vec<_> = (0..sound.len() / PAGE)
        .filter(|page| sound[page * PAGE..][..PAGE].iter().any(|&b| b != 0))
        .collect();
    let mut random = Random::new(9);
    for round in 0..1_500 {
        let mut bytes = sound.clone();
        for _ in 0..=random.below(4) {
            let page = written[random.below(written.len() as u64) as usize];
            let most = if random.below(2) == 0 { 72 } else { 4_088 };
            let at = page * PAGE + 8 + random.below(most) as usize;
            let mut wild = [0; 4];
            random.fill(&mut wild);
            let end = (at + 4).min((page + 1) * PAGE);
            bytes[at..end].copy_from_slice(&wild[..end - at]);
            reseal(&mut bytes, page, &secret);
        }
        let listed = Some(random.below(8) as u32);
        drop(look(&bytes, CheckScope { records: true, listed }));
        if round % 10 == 0 {
            let mut device = settled.fork();
            for (offset, mask) in
                (0..).zip(bytes.iter().zip(&sound).map(|(wild, sound)| wild ^ sound))
            {
                assert!(mask == 0 || device.rot(&StorePath::new(FILE_NAME), offset, mask));
            }
            let mut store = Store::open(device);
            store.work(100, &mut random);
            drop(store.served());
        }
    }
}

#[test]
fn what_cannot_be_read_is_said_to_be_unread() {
    let sound = bytes_of(&settled(3, 400));
    let report = look(&sound, ALL).expect("a store");
    let bad = report.segments.iter().find(|segment| segment.live_records > 0).expect("some").at;
    let end = bad + report.geometry.segment_bytes();
    let what = check(Medium::File, sound.len() as u64, ALL, &mut |offset, buffer: &mut [u8]| {
        if (bad..end).contains(&offset) {
            return Err(IoError::Device);
        }
        let from = usize::try_from(offset).expect("small");
        buffer.copy_from_slice(&sound[from..from + buffer.len()]);
        Ok(buffer.len())
    });
    let what = what.expect("the superblocks can be read");
    assert_eq!((what.findings.count(Level::Unread), damaged(&what)), (1, false));
    assert_eq!(what.findings.kept[0].reason, Reason::Unreadable(IoError::Device));
}
