//! Settings of the chapter "Operation".

use super::super::kind::{Area, Kind, Preset, Setting, choice, span};
use super::super::values::Output;
use std::time::Duration;

settings! {
    /// Logs, and the graceful stop.
    struct Operation, written as WrittenOperation in operation, chapter Operation;

    access_log: given Output {
        key: "access-log",
        flag: "access-log",
        kind: Kind::Output;
        default: Preset::Fixed(&["-"]),
        doc: "Where a line is written for each request: a file, `-` for standard output, or `off`. \
              SIGHUP opens the file anew. Lines that cannot be written fast enough are dropped and counted, \
              never waited for.",
    }

    access_log_format: given &'static str {
        key: "access-log-format",
        flag: "access-log-format",
        kind: choice, &[
                ("squid", "Squid's native format"),
                ("combined", "the Combined format of Apache and nginx"),
                ("json", "one JSON object a line"),
            ];
        default: Preset::Fixed(&["squid"]),
        doc: "How those lines look.",
    }

    log_level: given &'static str {
        key: "log-level",
        flag: "log-level",
        kind: choice, &[
                ("error", "what stops foxy"),
                ("warning", "also what costs hits"),
                ("info", "also start, stop and what an operator does"),
            ];
        default: Preset::Fixed(&["info"]),
        doc: "Which messages about foxy itself go to standard error.",
    }

    stop_after: given Duration {
        key: "stop-after",
        flag: "stop-after",
        kind: span;
        default: Preset::Fixed(&["10s"]),
        doc: "How long a graceful stop waits for requests in progress. \
              SIGTERM or SIGINT begins it; a second one ends it at once.",
    }
}
