//! The workloads of `foxy compare`, with the sizes of caches and the limits for proxies. Each row
//! of [`SCENARIOS`] is one workload.

use super::wisconsin;
use crate::fault::FaultKind;
use crate::peers::Holding;
use foxy_base::ByteSize;
use foxy_lab::Pace;
use foxy_workload::polymix::ROBOT_CONNECTIONS;
use foxy_workload::{Model, Objects, Workload};
use std::time::Duration;

const MEGABYTE: u64 = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum Work {
    Load(&'static str),
    /// One point of the Wisconsin Proxy Benchmark: a test with a fixed number of clients. The
    /// benchmark has its own load generator.
    Wisconsin,
}

#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    work: Work,
    /// The number of objects in a full and in a quick comparison. With 0, the workload's model
    /// determines the number.
    objects: [u64; 2],
    disk: [ByteSize; 2],
    pub memory: ByteSize,
    pub holding: Holding,
    /// The memory limit of the proxy's processes together, including the page cache that they fill.
    /// Not used if the machine has no control groups for memory.
    pub limit: Option<ByteSize>,
    /// The duration of this workload divided by the usual duration of a workload.
    pub times: u32,
    pub time_limit: Duration,
    /// The requests per second of an open load, which does not wait for answers. With `None`, each
    /// client waits for its answer before it sends the next request.
    pub rate: Option<f64>,
    pub fault: Option<FaultKind>,
    pub system_calls: bool,
    /// Whether the comparison requests the newest tenth of the objects again after the run. This
    /// reveals a proxy that seems fast because it discards writes.
    pub newest: bool,
}

const ZIPF: Scenario = Scenario {
    name: "zipf",
    work: Work::Load("zipf"),
    objects: [10_000, 10_000],
    disk: [ByteSize(512 * MEGABYTE); 2],
    memory: ByteSize(256 * MEGABYTE),
    holding: Holding::Memory,
    limit: None,
    times: 1,
    time_limit: Duration::from_secs(30),
    rate: None,
    fault: None,
    system_calls: false,
    newest: false,
};

const DISK_HIT: Scenario = Scenario {
    name: "disk-hit",
    work: Work::Load("disk-hit"),
    objects: [60_000, 10_000],
    disk: [ByteSize(1536 * MEGABYTE), ByteSize(256 * MEGABYTE)],
    memory: ByteSize(32 * MEGABYTE),
    holding: Holding::Disk,
    limit: Some(ByteSize(256 * MEGABYTE)),
    ..ZIPF
};

/// The settings that all workloads with an injected fault share. Clients request most of the
/// million objects once or twice, so hits and misses are mixed.
const FAULT: Scenario = Scenario {
    objects: [1_000_000, 1_000_000],
    disk: [ByteSize(256 * MEGABYTE); 2],
    memory: ByteSize(32 * MEGABYTE),
    holding: Holding::Disk,
    times: 3,
    rate: Some(500.0),
    ..ZIPF
};

/// All workloads of `foxy compare`. The sizes of the workloads suit a machine with two cores.
pub const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "memory-hit",
        work: Work::Load("memory-hit"),
        objects: [1, 1],
        system_calls: true,
        ..ZIPF
    },
    ZIPF,
    DISK_HIT,
    Scenario {
        name: "small",
        work: Work::Load("small"),
        objects: [200_000, 100_000],
        memory: ByteSize(8 * MEGABYTE),
        ..DISK_HIT
    },
    Scenario {
        name: "fill",
        work: Work::Load("fill"),
        objects: [98_304, 16_384],
        disk: [ByteSize(384 * MEGABYTE), ByteSize(64 * MEGABYTE)],
        memory: ByteSize(32 * MEGABYTE),
        holding: Holding::Disk,
        newest: true,
        ..ZIPF
    },
    Scenario {
        name: "large",
        work: Work::Load("large"),
        objects: [4, 2],
        times: 5,
        // The time limit is large, because 64 concurrent answers of 100 MB take 32 s at 200 MB/s.
        time_limit: Duration::from_secs(120),
        disk: [ByteSize(2048 * MEGABYTE); 2],
        memory: ByteSize(1024 * MEGABYTE),
        ..ZIPF
    },
    Scenario { name: "table3", work: Work::Load("table3"), times: 6, ..ZIPF },
    Scenario {
        name: "polymix-4",
        work: Work::Load("polymix-4"),
        disk: [ByteSize(64 * MEGABYTE), ByteSize(32 * MEGABYTE)],
        memory: ByteSize(32 * MEGABYTE),
        ..ZIPF
    },
    Scenario {
        name: "wpb",
        work: Work::Wisconsin,
        disk: [ByteSize(64 * MEGABYTE), ByteSize(16 * MEGABYTE)],
        memory: ByteSize(32 * MEGABYTE),
        holding: Holding::Disk,
        ..ZIPF
    },
    Scenario { name: "origin-down", fault: Some(FaultKind::OriginDown), ..FAULT },
    Scenario { name: "origin-slow", fault: Some(FaultKind::OriginSlow), ..FAULT },
    Scenario { name: "disk-full", fault: Some(FaultKind::DiskFull), ..FAULT },
];

/// The settings of PolyMix-4, first in a full and then in a quick comparison. They are the peak
/// requests per second, the cache size in bytes, and the number that divides all durations of the
/// workload.
const POLYMIX: [(f64, u64, u32); 2] = [(400.0, 64 * MEGABYTE, 240), (200.0, 8 * MEGABYTE, 2400)];

impl Scenario {
    pub fn find(name: &str) -> Option<Self> {
        SCENARIOS.into_iter().find(|scenario| scenario.name == name)
    }

    pub fn workload(&self, quick: bool) -> Option<Workload> {
        let Work::Load(name) = self.work else { return None };
        let workload = Workload::find(name).expect("every scenario's workload is known");
        let count = self.objects[usize::from(quick)];
        let warm_up = self.fault.is_none();
        let mut workload = workload.with_objects(|objects| Objects {
            objects: count,
            warm_up: objects.warm_up && warm_up,
            ..objects
        });
        if let Model::PolyMix4(knobs) = &mut workload.model {
            let (rate, cache, scale) = POLYMIX[usize::from(quick)];
            (knobs.peak_rate, knobs.fill_rate, knobs.time_scale) = (rate, rate, scale);
            knobs.cache_size = cache * u64::from(scale);
        }
        Some(workload)
    }

    pub fn is_at_full_speed(&self) -> bool {
        let at_full_speed = |workload: Workload| {
            self.pace(&workload) == Pace::Closed && workload.objects().is_some()
        };
        self.workload(true).is_some_and(at_full_speed)
    }

    pub fn pace(&self, workload: &Workload) -> Pace {
        match (&workload.model, self.rate) {
            (Model::Table3(knobs), _) => Pace::Random { rate: knobs.rate },
            (_, Some(rate)) => Pace::Open { rate },
            (_, None) => Pace::Closed,
        }
    }

    pub fn connections(&self, quick: bool, clients: usize) -> (u64, String) {
        let under = |count: u32, who: &str| format!("--workload {}: {count} {who}", self.name);
        let Some(workload) = self.workload(quick) else {
            let clients = wisconsin::point(quick).clients;
            return (clients.into(), under(clients, "clients"));
        };
        match workload.model {
            Model::Objects(_) | Model::Trace(_) => (clients as u64, format!("--clients {clients}")),
            Model::Table3(knobs) => (u64::from(knobs.clients), under(knobs.clients, "clients")),
            Model::PolyMix4(knobs) => (
                u64::from(knobs.robots()) * ROBOT_CONNECTIONS as u64,
                under(knobs.robots(), "robots"),
            ),
        }
    }

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
                let Some(objects) = workload.as_ref().and_then(Workload::objects) else { continue };
                let bytes = objects.objects * objects.size;
                match scenario.holding {
                    Holding::Memory => assert!(bytes <= scenario.memory.0, "{}", scenario.name),
                    Holding::Disk => assert!(bytes > 2 * scenario.memory.0, "{}", scenario.name),
                }
                let must_evict = bytes > scenario.disk(quick).0 && scenario.fault.is_none();
                assert_eq!(scenario.newest, must_evict, "{}", scenario.name);
            }
        }
    }
}
