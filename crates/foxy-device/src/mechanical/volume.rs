//! One disk with its file system: the arm, the layout, and the blocks of inodes and directories on
//! their way. Which operation waits for what is the device's matter.

use super::geometry::Geometry;
use super::layout::Layout;
use super::lru::Lru;
use super::profile::DiskProfile;
use super::queue::RequestId;
use super::spindle::Spindle;
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Names an operation in progress; never used twice.
pub(super) type OperationId = u64;

#[derive(Debug)]
pub(super) struct Volume {
    pub(super) spindle: Spindle,
    pub(super) layout: Layout,
    /// Blocks in memory by their first sector, with the request that read each last.
    pub(super) blocks: Lru<u64, RequestId>,
    /// Blocks being written back.
    pub(super) written_back: HashSet<u64>,
    /// Bytes of writes under way that no operation waits for by itself.
    pub(super) behind: u64,
    /// Operations that wait until there are fewer of these.
    pub(super) held: VecDeque<OperationId>,
}

impl Volume {
    pub(super) fn new(
        number: usize,
        profile: &DiskProfile,
        geometry: Arc<Geometry>,
        angle: u64,
    ) -> Self {
        let system = &profile.system;
        let blocks = system.metadata_cache / u64::from(system.page_size);
        Self {
            spindle: Spindle::new(number, profile, geometry, angle),
            layout: Layout::new(profile),
            blocks: Lru::new(usize::try_from(blocks).unwrap_or(usize::MAX)),
            written_back: HashSet::new(),
            behind: 0,
            held: VecDeque::new(),
        }
    }
}
