//! The faults of a random run. The seed decides their order, their targets and their lengths.

use crate::fleet::NAMES;
use crate::ground::Cut;
use foxy_base::Random;
use std::time::Duration;

/// Longest time of a fault in milliseconds. A lease is shorter.
const LONGEST: u64 = 3500;
/// Longest pause between two faults in milliseconds.
const LONGEST_REST: u64 = 2000;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    KillNode,
    PauseNode,
    CutNodeFromEngine,
    CutNodeFromNodes,
    CutEngine,
    KillEngine,
    WipeEngine,
    PauseEngine,
    RemoveEntries,
    RollLogBack,
}

impl Fault {
    pub const ALL: [Self; 10] = [
        Self::KillNode,
        Self::PauseNode,
        Self::CutNodeFromEngine,
        Self::CutNodeFromNodes,
        Self::CutEngine,
        Self::KillEngine,
        Self::WipeEngine,
        Self::PauseEngine,
        Self::RemoveEntries,
        Self::RollLogBack,
    ];

    /// Returns the name of the count in the run's record.
    pub const fn name(self) -> &'static str {
        match self {
            Self::KillNode => "node_kills",
            Self::PauseNode => "node_pauses",
            Self::CutNodeFromEngine => "cuts_of_a_node_from_the_engine",
            Self::CutNodeFromNodes => "cuts_of_a_node_from_other_nodes",
            Self::CutEngine => "cuts_of_the_engine_from_all_nodes",
            Self::KillEngine => "engine_kills",
            Self::WipeEngine => "engine_wipes",
            Self::PauseEngine => "engine_pauses",
            Self::RemoveEntries => "removals_of_entries",
            Self::RollLogBack => "rollbacks_of_the_log",
        }
    }

    /// Whether only links fail.
    pub const fn is_partition(self) -> bool {
        matches!(self, Self::CutNodeFromEngine | Self::CutNodeFromNodes | Self::CutEngine)
    }

    /// Whether two faults with the same target may not happen at the same time.
    pub const fn target(self, node: usize) -> usize {
        match self {
            Self::KillNode | Self::PauseNode => node,
            Self::CutNodeFromEngine | Self::CutEngine => NAMES.len(),
            Self::CutNodeFromNodes => NAMES.len() + 1,
            Self::KillEngine | Self::WipeEngine | Self::PauseEngine => NAMES.len() + 2,
            Self::RemoveEntries | Self::RollLogBack => NAMES.len() + 3,
        }
    }
}

/// The faults of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Healthy,
    /// Only links fail.
    Partitioned,
    Disturbed,
}

impl Phase {
    /// All phases, with the number of purges in each of the short run.
    pub const ALL: [(Self, u64); 3] =
        [(Self::Healthy, 30), (Self::Partitioned, 10), (Self::Disturbed, 20)];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Partitioned => "partitioned",
            Self::Disturbed => "disturbed",
        }
    }

    /// Returns the longest pause between two purges of a client in milliseconds. With faults, a
    /// phase needs time for several faults.
    pub const fn longest_pause(self) -> u64 {
        match self {
            Self::Healthy => 20,
            Self::Partitioned | Self::Disturbed => 1500,
        }
    }

    fn may_have(self, fault: Fault) -> bool {
        match self {
            Self::Healthy => false,
            Self::Partitioned => fault.is_partition(),
            Self::Disturbed => true,
        }
    }
}

/// The next fault.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub fault: Fault,
    pub node: usize,
    pub cut: Cut,
    pub length: Duration,
    /// Pause after the fault.
    pub rest: Duration,
}

/// An endless series of faults. Every kind comes once before any kind comes again.
pub struct Faults {
    random: Random,
    possible: Vec<Fault>,
    left: Vec<Fault>,
}

impl Faults {
    pub fn new(seed: u64, phase: Phase, has_links: bool) -> Self {
        let is_possible =
            |fault: &Fault| phase.may_have(*fault) && (has_links || !fault.is_partition());
        let possible = Fault::ALL.into_iter().filter(is_possible).collect();
        Self { random: Random::new(seed), possible, left: Vec::new() }
    }

    /// Returns the next fault of the plan. Returns `None` if no fault is possible.
    pub fn next(&mut self) -> Option<Planned> {
        if self.left.is_empty() {
            self.left.clone_from(&self.possible);
        }
        if self.left.is_empty() {
            return None;
        }
        let place = self.below(self.left.len());
        let fault = self.left.swap_remove(place);
        let node = self.below(NAMES.len());
        let cut = Cut::ALL[self.below(Cut::ALL.len())];
        // Half of all faults are short.
        let longest = if self.random.chance(0.5) { LONGEST / 10 } else { LONGEST };
        let length = Duration::from_millis(self.random.below(longest));
        let rest = Duration::from_millis(self.random.below(LONGEST_REST));
        Some(Planned { fault, node, cut, length, rest })
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).expect("small")
    }
}
