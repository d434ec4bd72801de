//! The table of storage scheme settings that experiments vary by name, as `NAME=VALUE`. A row
//! contains the name, the accepted values, and the effect on [`SchemeSettings`].

use crate::settings::{AufsWrites, SchemeSettings, UfsMapping};
use crate::slotted::BufferChoice;
use foxy_base::ByteSize;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A setting that experiments vary by its name.
pub struct TuningRow {
    /// Name of the setting.
    pub name: &'static str,
    /// The values that the setting accepts, and its default in brackets.
    pub values: &'static str,
    /// The storage schemes that use the setting, and its meaning.
    pub summary: &'static str,
    set: fn(&mut SchemeSettings, &str) -> Result<(), BadValue>,
}

/// The error for a value that a setting does not accept.
struct BadValue;

/// All settings that experiments vary.
pub const TUNING: &[TuningRow] = &[
    TuningRow {
        name: "aufs-queue",
        values: "1 to 1000000 [80]",
        summary: "aufs: operations in flight at which it opens no more files",
        set: |settings, text| put(&mut settings.aufs_queue, number(text, 1..=1_000_000)),
    },
    TuningRow {
        name: "aufs-writes",
        values: "threads, proxy [threads]",
        summary: "aufs on a modelled disk: who writes and closes files; Squid 2.5: proxy",
        set: |settings, text| {
            let choices = [("threads", AufsWrites::Threads), ("proxy", AufsWrites::Proxy)];
            put(&mut settings.aufs_writes, word(text, choices))
        },
    },
    TuningRow {
        name: "buddy-threshold",
        values: "1 to 65536 slots of 512 bytes [256]",
        summary: "buddy: largest record that shares a file",
        set: |settings, text| put(&mut settings.buddy_threshold, number(text, 1..=65_536)),
    },
    TuningRow {
        name: "diskd-q1",
        values: "1 to 1000000 [64]",
        summary: "diskd: operations in flight at which it opens no more files",
        set: |settings, text| put(&mut settings.diskd_q1, number(text, 1..=1_000_000)),
    },
    TuningRow {
        name: "locality-buffers",
        values: "1 to 1024 buffers of 64 KiB [128]",
        summary: "stream-loc, lazy-reads-loc, squidmla: buffers for origin servers",
        set: |settings, text| put(&mut settings.locality_buffers, number(text, 1..=1024)),
    },
    TuningRow {
        name: "locality-choice",
        values: "lru, fullest, random [lru]",
        summary: "stream-loc, lazy-reads-loc, squidmla: buffer to empty when all are in use",
        set: |settings, text| {
            let choices = [
                ("lru", BufferChoice::LeastRecentlyUsed),
                ("fullest", BufferChoice::Fullest),
                ("random", BufferChoice::Random),
            ];
            put(&mut settings.locality_choice, word(text, choices))
        },
    },
    TuningRow {
        name: "prefetch",
        values: "0 to 1M [0]",
        summary: "stream-loc, lazy-reads-loc, squidmla: most bytes that a read prefetches",
        set: |settings, text| put(&mut settings.prefetch, size(text, 1 << 20)),
    },
    TuningRow {
        name: "read-batch",
        values: "1 to 1000 reads [10]",
        summary: "lazy-reads, lazy-reads-loc: reads that are sorted and start together",
        set: |settings, text| put(&mut settings.read_batch, number(text, 1..=1000)),
    },
    TuningRow {
        name: "read-patience",
        values: "1 to 60000 ms [250]",
        summary: "lazy-reads, lazy-reads-loc: time after which a smaller batch starts",
        set: |settings, text| {
            put(&mut settings.read_patience, number(text, 1..=60_000).map(Duration::from_millis))
        },
    },
    TuningRow {
        name: "ufs-mapping",
        values: "consecutive, round-robin [consecutive]",
        summary: "ufs, aufs, diskd: how files are spread over folders",
        set: |settings, text| {
            let choices =
                [("consecutive", UfsMapping::Consecutive), ("round-robin", UfsMapping::RoundRobin)];
            put(&mut settings.ufs_mapping, word(text, choices))
        },
    },
    TuningRow {
        name: "ufs-piece",
        values: "0, or 4K to 1M in steps of 4K [0]",
        summary: "ufs, aufs, diskd: most bytes of one read or write; 0: whole file; Squid: 4K",
        set: |settings, text| {
            let pieces = size(text, 1 << 20).filter(|size| size.is_multiple_of(4096));
            put(&mut settings.ufs_piece, pieces)
        },
    },
];

impl SchemeSettings {
    /// Changes a setting that is written `NAME=VALUE`.
    ///
    /// # Errors
    /// A sentence that names the known settings or the accepted values.
    pub fn tune(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let row = TUNING.iter().find(|row| row.name == name.trim()).ok_or_else(|| {
            let names: Vec<_> = TUNING.iter().map(|row| row.name).collect();
            format!("there is no setting `{name}`; use one of: {}", names.join(", "))
        })?;
        (row.set)(self, value.trim())
            .map_err(|BadValue| format!("`{text}` is not valid; `{name}` accepts {}", row.values))
    }
}

fn put<T>(slot: &mut T, value: Option<T>) -> Result<(), BadValue> {
    *slot = value.ok_or(BadValue)?;
    Ok(())
}

fn number<T: FromStr + PartialOrd>(text: &str, allowed: RangeInclusive<T>) -> Option<T> {
    text.parse().ok().filter(|number| allowed.contains(number))
}

fn size(text: &str, most: usize) -> Option<usize> {
    let size: ByteSize = text.parse().ok()?;
    usize::try_from(size.0).ok().filter(|size| *size <= most)
}

fn word<T: Copy, const N: usize>(text: &str, choices: [(&str, T); N]) -> Option<T> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_changed_by_name() {
        let mut settings = SchemeSettings::with_size(1 << 30);
        for text in [
            "locality-buffers=32",
            "locality-choice = fullest",
            "read-batch=20",
            "read-patience=100",
            "prefetch=64K",
            "ufs-piece=4K",
            "aufs-writes=proxy",
        ] {
            assert_eq!(settings.tune(text), Ok(()), "{text}");
        }
        assert_eq!(settings.locality_buffers, 32);
        assert_eq!(settings.locality_choice, BufferChoice::Fullest);
        assert_eq!((settings.read_batch, settings.read_patience.as_millis()), (20, 100));
        assert_eq!(settings.prefetch, 64 << 10);
        assert_eq!((settings.ufs_piece, settings.aufs_writes), (4096, AufsWrites::Proxy));
    }

    #[test]
    fn an_error_names_the_settings_or_the_values() {
        let mut settings = SchemeSettings::with_size(1 << 30);
        let unknown = settings.tune("batch=5").expect_err("unknown");
        assert!(unknown.contains("read-batch"), "{unknown}");
        for text in [
            "read-batch",
            "read-batch=0",
            "read-batch=many",
            "locality-choice=best",
            "ufs-piece=6000",
        ] {
            let refused = settings.tune(text).expect_err(text);
            assert!(refused.contains("accepts"), "{refused}");
        }
        assert_eq!(settings, SchemeSettings::with_size(1 << 30));
    }
}
