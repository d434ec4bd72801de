//! Tests the check of a store whose journal has no readable block.

use super::*;

#[test]
fn a_journal_without_a_whole_block_is_damage_and_forgets_everything() {
    // Tests the journal of a store that was opened again and killed, then the journal of a new
    // store.
    for lives in [1, 0] {
        let mut device = settled(3, 150);
        for _ in 0..lives {
            device = Store::open(device).kill();
        }
        let sound = bytes_of(&device);
        let report = look(&sound, ALL).expect("a store");
        assert!(!damaged(&report) && report.journal.blocks > 0);
        let half = report.geometry.journal[report.superblock.journal_half as usize];
        for noise in [0, 0x5a] {
            let mut device = device.fork();
            for at in half.offset()..half.offset() + half.bytes() as u64 {
                let mask = sound[at as usize] ^ noise;
                assert!(mask == 0 || device.rot(&StorePath::new(FILE_NAME), at, mask));
            }
            let report = look(&bytes_of(&device), ALL).expect("a store");
            let lost = |finding: &Finding| finding.reason == Reason::JournalDamaged;
            assert!(report.findings.kept.iter().any(lost), "{:?}", report.findings);
            assert!(Store::open(device).served().iter().all(Option::is_none));
        }
    }
}
