//! A trial of a comparison, and what all trials of the comparison share.

use super::scenario::Scenario;
use crate::peers::Peer;
use foxy_cli::terminal::{self, Level};
use foxy_lab::Origin;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// What is the same for all trials.
pub struct TrialContext {
    /// Where proxies get a folder each, for as long as they run.
    pub folder: PathBuf,
    /// The origin of all objects.
    pub origin: Origin,
    /// Whether this is a quick comparison.
    pub quick: bool,
    /// How long hits are measured.
    pub time: Duration,
    /// Connections.
    pub clients: usize,
    /// Rates, in requests a second, at which latency is measured besides.
    pub rates: Vec<u32>,
    /// The seed of every choice.
    pub seed: u64,
    /// Set by a signal: begin nothing more.
    pub interrupted: Arc<AtomicBool>,
    /// Whether it was said that a signal has come.
    pub said: AtomicBool,
}

impl TrialContext {
    /// Whether a signal has come, which is said once: to remove what a proxy kept can take long.
    pub fn is_stopping(&self, name: &str) -> bool {
        let stopping = self.interrupted.load(Relaxed);
        if stopping && !self.said.swap(true, Relaxed) {
            terminal::report(
                Level::Info,
                &format!("stopping: ending {name} and removing what it kept"),
            );
        }
        stopping
    }
}

/// Which trial.
pub struct Trial<'a> {
    /// The proxy.
    pub peer: Peer,
    /// Its program.
    pub program: &'a Path,
    /// What it is put under.
    pub scenario: Scenario,
    /// Which repeat, counted from 1.
    pub repeat: u32,
    /// Which of all trials, for people who wait.
    pub label: String,
}
