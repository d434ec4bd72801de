//! What a crash does to what was not yet durable, as numbers. The device applies them.

use foxy_base::Random;

/// How likely each change that was not durable survives a crash; each is drawn on its own, so that
/// a later change may survive an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrashPolicy {
    /// Probability that a write, truncation or trim survives whole.
    pub keep_write: f64,
    /// Probability that it is torn: of a write, each 512-byte sector then survives with probability
    /// one half. What is neither kept nor torn is lost.
    pub tear_write: f64,
    /// Probability that a name made or removed stays so.
    pub keep_name: f64,
}

impl CrashPolicy {
    /// Everything survives, as when only the process dies.
    pub const KEEP_ALL: Self = Self { keep_write: 1.0, tear_write: 0.0, keep_name: 1.0 };
    /// Nothing survives that was not synced.
    pub const LOSE_ALL: Self = Self { keep_write: 0.0, tear_write: 0.0, keep_name: 0.0 };
    /// Some of everything.
    pub const MIXED: Self = Self { keep_write: 0.4, tear_write: 0.3, keep_name: 0.5 };

    pub(crate) fn write_fate(&self, random: &mut Random) -> Fate {
        let drawn = random.unit();
        if drawn < self.keep_write {
            Fate::Kept
        } else if drawn < self.keep_write + self.tear_write {
            Fate::Torn
        } else {
            Fate::Lost
        }
    }
}

/// What becomes of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Torn,
    Lost,
}
