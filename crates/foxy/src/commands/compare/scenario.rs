//! What each workload means for a comparison: how much is asked for, what the proxies may keep, and what is looked at besides
//! the answers. A workload that can be compared is one row of [`SCENARIOS`].

use crate::lab::peers::Holding;
use foxy_base::ByteSize;
use foxy_workload::{Objects, Workload};

const MEGABYTE: u64 = 1 << 20;

/// A workload as proxies are compared under it.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The workload's name.
    pub workload: &'static str,
    /// How many objects, in a full comparison and in a quick one.
    objects: [u64; 2],
    /// What a proxy may keep on disk, in a full comparison and in a quick one.
    disk: [ByteSize; 2],
    /// What it may keep in memory.
    pub memory: ByteSize,
    /// Where what is asked for again is meant to lie.
    pub holding: Holding,
    /// What its processes may take together with their page cache, where that can be limited.
    pub limit: Option<ByteSize>,
    /// Whether the system calls of the proxy are counted, in a run of their own.
    pub system_calls: bool,
    /// Whether the newest tenth is asked for again at the end: a proxy that quietly does not store looks fast.
    pub newest: bool,
}

/// The plainest; the others say in what they differ from it.
const ZIPF: Scenario = Scenario {
    workload: "zipf",
    objects: [10_000, 10_000],
    disk: [ByteSize(512 * MEGABYTE); 2],
    memory: ByteSize(256 * MEGABYTE),
    holding: Holding::Memory,
    limit: None,
    system_calls: false,
    newest: false,
};

/// Every workload that proxies can be compared under. Sizes are a part of ANCHORS' M1, M2, D1C, F1 and L1 that a machine of
/// two cores gets through in minutes; their proportions are kept.
pub const SCENARIOS: [Scenario; 5] = [
    Scenario { workload: "memory-hit", objects: [1, 1], system_calls: true, ..ZIPF },
    ZIPF,
    Scenario {
        workload: "disk-hit",
        objects: [60_000, 10_000],
        disk: [ByteSize(1536 * MEGABYTE), ByteSize(256 * MEGABYTE)],
        memory: ByteSize(32 * MEGABYTE),
        holding: Holding::Disk,
        limit: Some(ByteSize(256 * MEGABYTE)),
        ..ZIPF
    },
    Scenario {
        workload: "fill",
        objects: [98_304, 16_384],
        disk: [ByteSize(384 * MEGABYTE), ByteSize(64 * MEGABYTE)],
        memory: ByteSize(32 * MEGABYTE),
        holding: Holding::Disk,
        newest: true,
        ..ZIPF
    },
    Scenario {
        workload: "large",
        objects: [4, 2],
        disk: [ByteSize(2048 * MEGABYTE); 2],
        memory: ByteSize(1024 * MEGABYTE),
        ..ZIPF
    },
];

impl Scenario {
    /// The scenario of that workload.
    pub fn find(workload: &str) -> Option<Self> {
        SCENARIOS.into_iter().find(|scenario| scenario.workload == workload)
    }

    /// The workload itself, of this size.
    pub fn workload(&self, quick: bool) -> Workload {
        let workload = Workload::find(self.workload).expect("every scenario's workload is known");
        let count = self.objects[usize::from(quick)];
        workload.with_objects(|objects| Objects { objects: count, ..objects })
    }

    /// What a proxy may keep on disk.
    pub const fn disk(&self, quick: bool) -> ByteSize {
        self.disk[quick as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_lie_on_disk_does_not_fit_memory_and_a_fill_does_not_fit_the_disk() {
        for quick in [false, true] {
            for scenario in SCENARIOS {
                let workload = scenario.workload(quick);
                let objects = workload.objects().expect("a workload of objects");
                let bytes = objects.objects * objects.size;
                match scenario.holding {
                    Holding::Memory => assert!(bytes <= scenario.memory.0, "{}", scenario.workload),
                    Holding::Disk => assert!(bytes > 2 * scenario.memory.0, "{}", scenario.workload),
                }
                assert_eq!(scenario.newest, bytes > scenario.disk(quick).0, "{}", scenario.workload);
            }
        }
    }
}
