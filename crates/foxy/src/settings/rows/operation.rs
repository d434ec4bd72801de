//! Settings of the chapter "Operation".

use super::super::kind::{Area, Kind, Preset, Setting};
use super::super::values::Output;
use std::time::Duration;

settings! {
    struct Operation, written as WrittenOperation in operation, chapter Operation;

    access_log: given Output {
        key: "access-log",
        flag: "access-log",
        kind: Kind::Output;
        default: Preset::Fixed(&["-"]),
        doc: "Output for a line per request: a file, `-` for standard output, or `off`. SIGHUP \
        opens \
              the file anew. Lines that cannot be written fast enough are dropped and counted.",
    }

    access_log_format: given &'static str {
        key: "access-log-format",
        flag: "access-log-format",
        kind: Kind::choice, &[
            ("squid", "Squid's native format"),
            ("combined", "the Combined format of Apache and nginx"),
            ("json", "one JSON object per line"),
        ];
        default: Preset::Fixed(&["squid"]),
        doc: "Format of the access log.",
    }

    log_level: given &'static str {
        key: "log-level",
        flag: "log-level",
        kind: Kind::choice, &[
            ("error", "what stops foxy"),
            ("warning", "also what costs hits"),
            ("info", "also start, stop and the operator's actions"),
        ];
        default: Preset::Fixed(&["info"]),
        doc: "Which of foxy's own messages go to standard error.",
    }

    stop_after: given Duration {
        key: "stop-after",
        flag: "stop-after",
        kind: Kind::span;
        default: Preset::Fixed(&["10s"]),
        doc: "How long a graceful stop waits for requests in progress. SIGTERM or SIGINT begins \
        it; a \
              second signal ends it at once.",
    }
}
