//! A progress line on stderr. A terminal shows it anew at most four times per second. Elsewhere, it
//! appears only if the command asks for lines, and then every ten seconds.

use crate::terminal::{self, Level};
use foxy_base::{Instant, clock};
use std::io::{IsTerminal, Write};
use std::time::Duration;

#[derive(Clone, Copy)]
enum End {
    Open,
    Count(u64),
    After(Duration),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Hidden,
    Redrawn,
    Lines,
}

/// A progress line on stderr. Dropping the value erases the line.
pub struct Progress {
    label: String,
    end: End,
    started: Instant,
    drawn: Instant,
    form: Form,
}

impl Progress {
    /// Creates a progress line that starts with `label`. If `total` is a number of units of work,
    /// the line also estimates the remaining time.
    pub fn new(label: &str, total: Option<u64>) -> Self {
        Self::begun(label, total.map_or(End::Open, End::Count))
    }

    /// Creates a progress line for work that ends after the duration `time`.
    pub fn lasting(label: &str, time: Duration) -> Self {
        Self::begun(label, End::After(time))
    }

    fn begun(label: &str, end: End) -> Self {
        let now = clock::monotonic();
        let form = if std::io::stderr().is_terminal() { Form::Redrawn } else { Form::Hidden };
        Self { label: label.into(), end, started: now, drawn: now, form }
    }

    /// Prints a new line every ten seconds if stderr is not a terminal.
    #[must_use]
    pub fn with_lines(mut self) -> Self {
        if self.form == Form::Hidden {
            self.form = Form::Lines;
        }
        self
    }

    /// Changes the label of the progress line, and restarts its measurement of time.
    pub fn begin(&mut self, label: &str) {
        let now = clock::monotonic();
        (self.label, self.started) = (label.into(), now);
    }

    /// Shows that `done` of `total` units of work are complete.
    pub fn update_of(&mut self, done: u64, total: u64) {
        self.end = End::Count(total);
        self.update(done);
    }

    /// Shows that `done` units of work are complete.
    pub fn update(&mut self, done: u64) {
        let Some(line) = self.due(done, clock::monotonic()) else { return };
        if self.form == Form::Lines {
            terminal::report(Level::Info, &line);
            return;
        }
        let mut out = std::io::stderr().lock();
        // A write error, such as that of a closed terminal, is ignored.
        let _ = write!(out, "\r\x1b[K{line}").and_then(|()| out.flush());
    }

    /// Returns the line if it is time to show it.
    fn due(&mut self, done: u64, now: Instant) -> Option<String> {
        let period = match self.form {
            Form::Hidden => return None,
            Form::Redrawn => Duration::from_millis(250),
            Form::Lines => Duration::from_secs(10),
        };
        if now.since(self.drawn) < period {
            return None;
        }
        self.drawn = now;
        Some(line(&self.label, done, self.end, now.since(self.started)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.form == Form::Redrawn {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn line(label: &str, done: u64, end: End, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    match end {
        End::Count(total) if done < total && rate > 0.0 => {
            let share = done as f64 * 100.0 / total as f64;
            let left = (total - done) as f64 / rate;
            format!("{label}: {share:.0} % of {total}, {rate:.0}/s, {left:.0} s left")
        }
        End::After(time) if elapsed < time => {
            let left = (time - elapsed).as_secs_f64().ceil();
            format!("{label}: {done}, {rate:.0}/s, {left:.0} s left")
        }
        End::After(_) => format!("{label}: {done}, {rate:.0}/s, waiting for the last answers"),
        End::Count(_) | End::Open => format!("{label}: {done}, {rate:.0}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_total_gives_an_estimate() {
        assert_eq!(
            line("warm-up", 250, End::Count(1000), Duration::from_secs(1)),
            "warm-up: 25 % of 1000, 250/s, 3 s left"
        );
        assert_eq!(line("load", 250, End::Open, Duration::from_secs(1)), "load: 250, 250/s");
    }

    #[test]
    fn lines_come_every_ten_seconds_where_there_is_no_terminal() {
        let mut progress = Progress::new("load", None);
        progress.form = Form::Hidden;
        let times = [9, 10, 15, 20].map(|seconds| progress.drawn + Duration::from_secs(seconds));
        assert!(times.iter().all(|&now| progress.due(1, now).is_none()));
        progress = progress.with_lines();
        let lines = times.map(|now| progress.due(100, now).is_some());
        assert_eq!(lines, [false, true, false, true]);
    }

    #[test]
    fn of_what_takes_a_known_time_the_time_left_is_said() {
        let at = |milliseconds| {
            line(
                "load",
                500,
                End::After(Duration::from_secs(10)),
                Duration::from_millis(milliseconds),
            )
        };
        assert_eq!(at(2500), "load: 500, 200/s, 8 s left");
        assert_eq!(at(10_000), "load: 500, 50/s, waiting for the last answers");
    }
}
