//! Settings of the chapter "Operation".

use super::super::kind::{Kind, Preset, Setting};
use super::super::values::Output;
use std::time::Duration;

settings! {
    struct Operation, written as WrittenOperation in operation, chapter "Operation";

    /// Where foxy writes a line for each request: a file, `-` for standard output, or `off`. On
    /// SIGHUP foxy opens the file again. If the output is too slow, foxy drops lines and counts
    /// them.
    access_log: given Output = "access-log" flag "access-log", Output, Fixed("-");

    /// Format of the access log.
    access_log_format: given &'static str = "access-log-format" flag "access-log-format", choice(&[
        ("squid", "Squid's native format"),
        ("combined", "the Combined format of Apache and nginx"),
        ("json", "one JSON object per line"),
    ]), Fixed("squid");

    /// foxy's own messages that appear on standard error.
    log_level: given &'static str = "log-level" flag "log-level", choice(&[
        ("error", "errors that stop foxy"),
        ("warning", "also problems that cost hits"),
        ("info", "also start, stop and administrator actions"),
    ]), Fixed("info");

    /// How long a graceful stop (SIGTERM or SIGINT) waits for requests in progress. A second signal
    /// stops foxy at once.
    stop_after: given Duration = "stop-after" flag "stop-after", span, Fixed("10s");

    /// How long the old process of `foxy upgrade` continues, for its requests, tunnels and
    /// WebSockets.
    leave_after: given Duration = "leave-after" flag "leave-after", span, Fixed("10m");
}
