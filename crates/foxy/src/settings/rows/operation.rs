//! Settings of the chapter "Operation".

use super::super::kind::{Kind, Preset, Setting};
use super::super::values::Output;
use foxy_base::ByteSize;
use foxy_proxy::upstream::OriginServer;
use std::path::PathBuf;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

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

    /// File of a fixed size with the newest transactions: each error, the slowest 1 % of the
    /// requests with each outcome, such as hits, and a sample of the rest. `foxy log` reads it.
    transaction_log: optional PathBuf = "transaction-log" flag "transaction-log",
        File, Nothing("foxy keeps no transactions");

    /// Size of the file of `transaction-log`. With another size, foxy begins the file anew.
    transaction_log_size: given ByteSize = "transaction-log-size" flag "transaction-log-size",
        size(MIB, TIB), Fixed("256M");

    /// Whether origins receive the id of a request in `X-Request-Id`. If a client in
    /// `forwarded-from` sends an id in this field, foxy uses this id. Otherwise foxy makes an id.
    request_ids: given &'static str = "request-ids" flag "request-ids", choice(&[
        ("log", "only logs and error answers show ids"),
        ("send", "origins also receive ids"),
    ]), Fixed("log");

    /// Which answers tell the outcome and the times of their request in `Server-Timing`.
    server_timing: given &'static str = "server-timing" flag "server-timing", choice(&[
        ("asked", "answers to clients that may purge and send `Foxy-Explain: timing`"),
        ("always", "all answers"),
    ]), Fixed("asked");

    /// Whether foxy estimates the hits of other cache sizes and policies, for `foxy whatif`.
    what_if: given &'static str = "what-if" flag "what-if", choice(&[
        ("on", "estimates, with up to 18 MiB of memory"),
        ("off", "no estimates"),
    ]), Fixed("on");

    /// Collector that receives traces of requests, and foxy's own messages as log records, over
    /// OpenTelemetry's protocol OTLP/HTTP.
    otlp: optional OriginServer = "otlp" flag "otlp",
        Origin, Nothing("foxy exports no traces");

    /// foxy's own messages that appear on standard error.
    log_level: given &'static str = "log-level" flag "log-level", choice(&[
        ("error", "errors that stop foxy"),
        ("warning", "also problems that cost hits"),
        ("info", "also start, stop and administrator actions"),
    ]), Fixed("info");

    /// How long a graceful stop (SIGTERM or SIGINT) waits for requests in progress. A second signal
    /// stops foxy at once.
    stop_after: given Duration = "stop-after" flag "stop-after", span, Fixed("10s");

    /// Longest time for which the old process of `foxy upgrade` continues, for its requests,
    /// tunnels and WebSockets.
    leave_after: given Duration = "leave-after" flag "leave-after", span, Fixed("10m");
}
