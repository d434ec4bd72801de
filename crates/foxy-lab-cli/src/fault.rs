//! Causes a fault in the middle third of a load test: an origin that refuses connections, a slow
//! origin, or a full disk.

use foxy_base::Instant;
use foxy_lab::load::fault::{Fault, Phase};
use foxy_lab::load::origin::{Health, Origin};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const LATE: Duration = Duration::from_millis(500);
const PIECE: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    OriginDown,
    OriginSlow,
    DiskFull,
}

pub const FAULTS: [(&str, FaultKind); 3] = [
    ("origin-down", FaultKind::OriginDown),
    ("origin-slow", FaultKind::OriginSlow),
    ("disk-full", FaultKind::DiskFull),
];

/// A fault that lasts for the middle third of a load test. Dropping this value ends the fault.
pub struct Staged<'a> {
    kind: FaultKind,
    origin: &'a Origin,
    ballast: PathBuf,
    begun: Instant,
    third: Duration,
    fault: Arc<Fault>,
}

impl<'a> Staged<'a> {
    pub fn new(
        kind: FaultKind,
        origin: &'a Origin,
        folder: &Path,
        now: Instant,
        total: Duration,
    ) -> Self {
        let ballast = folder.join("ballast");
        Self { kind, origin, ballast, begun: now, third: total / 3, fault: Arc::default() }
    }

    pub fn fault(&self) -> Arc<Fault> {
        Arc::clone(&self.fault)
    }

    pub fn tick(&self, now: Instant) {
        let passed = now.since(self.begun);
        match self.fault.phase() {
            Phase::Before if passed >= self.third => {
                self.fault.enter(Phase::Turning);
                self.make();
                self.fault.enter(Phase::During);
            }
            Phase::During if passed >= 2 * self.third => {
                self.fault.enter(Phase::Turning);
                self.mend();
                self.fault.enter(Phase::After);
            }
            _ => {}
        }
    }

    fn make(&self) {
        match self.kind {
            FaultKind::OriginDown => self.origin.set_health(Health::Down),
            FaultKind::OriginSlow => self.origin.set_health(Health::Slow(LATE)),
            FaultKind::DiskFull => fill(&self.ballast),
        }
    }

    fn mend(&self) {
        match self.kind {
            FaultKind::OriginDown | FaultKind::OriginSlow => self.origin.set_health(Health::Well),
            // If the fault has not begun, the file that fills the disk does not exist. So an error
            // does not matter.
            FaultKind::DiskFull => drop(std::fs::remove_file(&self.ballast)),
        }
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.mend();
    }
}

fn fill(file: &Path) {
    let piece = vec![0x5a; PIECE];
    if let Ok(mut file) = File::create(file) {
        let mut size = piece.len();
        while size > 0 {
            if file.write_all(&piece[..size]).is_err() {
                size /= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin;

    #[test]
    fn a_fault_comes_and_goes_with_the_thirds_of_its_run() {
        let origin = origin::start("a test", 1).expect("an origin");
        let total = Duration::from_secs(300);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let staged =
            Staged::new(FaultKind::OriginDown, &origin, Path::new("nowhere"), at(0), total);
        for (seconds, phase, health) in [
            (0, Phase::Before, Health::Well),
            (99, Phase::Before, Health::Well),
            (100, Phase::During, Health::Down),
            (199, Phase::During, Health::Down),
            (200, Phase::After, Health::Well),
            (300, Phase::After, Health::Well),
        ] {
            staged.tick(at(seconds));
            assert_eq!(
                (staged.fault().phase(), origin.health()),
                (phase, health),
                "after {seconds} s"
            );
        }
    }

    #[test]
    fn a_run_that_ends_early_leaves_no_fault_behind() {
        let origin = origin::start("a test", 1).expect("an origin");
        let total = Duration::from_secs(3);
        let staged =
            Staged::new(FaultKind::OriginSlow, &origin, Path::new("nowhere"), Instant::ZERO, total);
        staged.tick(Instant::ZERO + Duration::from_secs(1));
        assert_eq!(origin.health(), Health::Slow(LATE));
        drop(staged);
        assert_eq!(origin.health(), Health::Well);
    }
}
