//! Settings of the chapter "Operation".

use super::super::kind::{Kind, Preset, Setting};
use super::super::values::Output;
use std::time::Duration;

settings! {
    struct Operation, written as WrittenOperation in operation, chapter "Operation";

    /// Output for a line per request: a file, `-` for standard output, or `off`. SIGHUP opens the
    /// file anew. Lines that cannot be written fast enough are dropped and counted.
    access_log: given Output = "access-log" flag "access-log", Output, Fixed("-");

    /// Format of the access log.
    access_log_format: given &'static str = "access-log-format" flag "access-log-format", choice(&[
        ("squid", "Squid's native format"),
        ("combined", "the Combined format of Apache and nginx"),
        ("json", "one JSON object per line"),
    ]), Fixed("squid");

    /// Which of foxy's own messages go to standard error.
    log_level: given &'static str = "log-level" flag "log-level", choice(&[
        ("error", "what stops foxy"),
        ("warning", "also what costs hits"),
        ("info", "also start, stop and the operator's actions"),
    ]), Fixed("info");

    /// How long a graceful stop waits for requests in progress. SIGTERM or SIGINT begins it; a
    /// second signal ends it at once.
    stop_after: given Duration = "stop-after" flag "stop-after", span, Fixed("10s");
}
