//! The table of HAProxy's directives. Rows say where a directive is converted, or why it is not.

/// What the import does with a directive. A row matches the beginning of a line.
#[derive(Clone, Copy, Debug)]
pub enum HaproxyHandling {
    /// The conversion of a section reads the directive.
    Read,
    /// foxy works so without a setting.
    NotNeeded(&'static str),
    /// foxy has no equivalent.
    Missing(&'static str),
    /// foxy has no equivalent, and permits more.
    Opens(&'static str),
}

use HaproxyHandling::{Missing, NotNeeded, Opens, Read};

const UNIT: &str = "the service manager decides this; see packaging/systemd";
const ALWAYS: &str = "foxy always works so";
const BALANCE: &str = "foxy takes the less busy of two servers";
const HEALTH: &str = "foxy judges servers by errors, by latency and by `probe`";

/// All directives with a row of their own; the first row that matches counts.
pub const TABLE: &[(&[&str], HaproxyHandling)] = &[
    (&["bind"], Read),
    (&["acl"], Read),
    (&["use_backend"], Read),
    (&["default_backend"], Read),
    (&["server"], Read),
    (&["http-request", "deny"], Read),
    (&["http-request", "allow"], Read),
    (&["http-request", "reject"], Read),
    (&["http-request", "set-header"], Read),
    (&["http-request", "del-header"], Read),
    (&["http-response", "set-header"], Read),
    (&["http-response", "del-header"], Read),
    (&["http-request", "cache-use"], Read),
    (&["http-response", "cache-store"], Read),
    (&["tcp-request", "connection", "reject"], Read),
    (&["option", "httpchk"], Read),
    (&["http-check", "send"], Read),
    (&["timeout"], Read),
    (&["mode", "http"], NotNeeded(ALWAYS)),
    (&["mode", "tcp"], Missing("foxy relays HTTP alone")),
    (&["total-max-size"], Read),
    (&["max-object-size"], Read),
    (&["max-age"], Read),
    (&["process-vary"], NotNeeded("foxy always obeys Vary")),
    (&["max-secondary-entries"], NotNeeded("foxy bounds its own memory")),
    (&["balance"], Missing(BALANCE)),
    (&["cookie"], Missing("foxy binds no client to a server")),
    (&["stick-table"], Missing("foxy binds no client to a server")),
    (&["stick"], Missing("foxy binds no client to a server")),
    (&["http-request", "auth"], Opens("foxy as a reverse proxy asks for no password")),
    (&["http-request", "tarpit"], Opens("foxy delays no requests; write a rule that denies")),
    (&["http-request", "track-sc0"], Opens("write a rule with a limit")),
    (&["http-request", "redirect"], Missing("foxy sends no redirects")),
    (&["redirect"], Missing("foxy sends no redirects")),
    (&["http-request", "return"], Missing("foxy has no answers of its own")),
    (&["http-request", "set-path"], Missing("see `rewrite` of a rule")),
    (&["http-request", "replace-path"], Missing("see `rewrite` of a rule")),
    (&["tcp-request"], Opens("the line may refuse connections; write a rule")),
    (&["http-response", "deny"], Opens("foxy refuses no response")),
    (&["compression"], Missing("foxy passes compressed responses on; compress at the origin")),
    (&["stats"], Missing("see /metrics of the admin server")),
    (&["option", "forwardfor"], NotNeeded("foxy sends Forwarded and X-Forwarded-*")),
    (&["option", "forwarded"], NotNeeded("foxy sends Forwarded and X-Forwarded-*")),
    (&["option", "httplog"], NotNeeded("see `access-log-format`")),
    (&["option", "dontlognull"], NotNeeded("foxy logs requests, not connections")),
    (&["option", "http-server-close"], NotNeeded("foxy keeps connections")),
    (&["option", "http-keep-alive"], NotNeeded(ALWAYS)),
    (&["option", "redispatch"], NotNeeded("foxy tries another server where that is safe")),
    (&["retries"], NotNeeded("foxy tries another server where that is safe")),
    (&["http-reuse"], NotNeeded("foxy keeps connections")),
    (&["http-check"], Missing(HEALTH)),
    (&["default-server"], NotNeeded(HEALTH)),
    (&["log"], NotNeeded("see `access-log`")),
    (&["log-format"], Missing("foxy has the formats squid, combined and json")),
    (&["errorfile"], Missing("foxy has its own texts of errors")),
    (&["maxconn"], NotNeeded("see `limits.connections`")),
    (&["chroot"], NotNeeded(UNIT)),
    (&["user"], NotNeeded(UNIT)),
    (&["group"], NotNeeded(UNIT)),
    (&["daemon"], NotNeeded(UNIT)),
    (&["pidfile"], NotNeeded(UNIT)),
    (&["nbthread"], NotNeeded("foxy has a thread for each core; see `workers`")),
    (&["ca-base"], NotNeeded("write whole paths")),
    (&["crt-base"], NotNeeded("write whole paths")),
    (&["ssl-default-bind-ciphers"], NotNeeded("foxy has its own TLS settings")),
    (&["ssl-default-bind-ciphersuites"], NotNeeded("foxy has its own TLS settings")),
    (&["ssl-default-bind-options"], NotNeeded("foxy has its own TLS settings")),
    (&["tune.ssl.default-dh-param"], NotNeeded("foxy has its own TLS settings")),
];
