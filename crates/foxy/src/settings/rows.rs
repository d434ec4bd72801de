//! Short forms for rows of the table of settings that differ in little.

use super::kind::{Area, Kind, Preset, Setting, Slot};
use foxy_base::ByteSize;
use std::time::Duration;

/// A time to wait for something.
pub const fn timeout(
    key: &'static str,
    default: &'static [&'static str],
    slot: Slot<Duration>,
    doc: &'static str,
) -> Setting {
    Setting {
        key,
        flag: None,
        area: Area::Timeouts,
        kind: span(slot),
        default: Preset::Fixed(default),
        doc,
    }
}

/// A limit on the number of something.
pub const fn count(
    key: &'static str,
    at_least: usize,
    at_most: usize,
    default: &'static [&'static str],
    slot: Slot<usize>,
    doc: &'static str,
) -> Setting {
    let kind = Kind::Count { slot, at_least, at_most };
    Setting { key, flag: None, area: Area::Limits, kind, default: Preset::Fixed(default), doc }
}

/// A number of operations in a store.
pub const fn scheme_count(
    key: &'static str,
    default: &'static [&'static str],
    slot: Slot<usize>,
    doc: &'static str,
) -> Setting {
    let kind = Kind::Count { slot, at_least: 1, at_most: 65_536 };
    Setting { key, flag: None, area: Area::Store, kind, default: Preset::Fixed(default), doc }
}

/// Bytes within bounds.
pub const fn size(slot: Slot<ByteSize>, at_least: u64, at_most: u64) -> Kind {
    Kind::Size { slot, at_least: ByteSize(at_least), at_most: ByteSize(at_most) }
}

/// A span of time that is neither nothing nor for ever.
pub const fn span(slot: Slot<Duration>) -> Kind {
    Kind::Span { slot, at_least: Duration::from_millis(10), at_most: Duration::from_secs(86_400) }
}
