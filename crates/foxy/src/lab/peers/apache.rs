//! Apache with `mod_cache_disk` under the event MPM: a pair of files for each object; the page cache is its memory.

use super::helper::Helper;
use super::{Description, Plan};
use std::fmt::Write as _;

const MODULES: [(&str, &str); 6] = [
    ("mpm_event_module", "mod_mpm_event"),
    ("authz_core_module", "mod_authz_core"),
    ("proxy_module", "mod_proxy"),
    ("proxy_http_module", "mod_proxy_http"),
    ("cache_module", "mod_cache"),
    ("cache_disk_module", "mod_cache_disk"),
];

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let mut file = String::new();
    for (module, name) in MODULES {
        let _infallible = writeln!(file, "LoadModule {module} /usr/lib/apache2/modules/{name}.so");
    }
    let _infallible = write!(
        file,
        "ServerRoot {folder}
DefaultRuntimeDir {folder}
ServerName {}
Listen {listen}
PidFile {folder}/pid
ErrorLog {folder}/messages
Mutex file:{folder}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
StartServers {cores}
ServerLimit {cores}
ThreadsPerChild 128
MaxRequestWorkers {}
AsyncRequestWorkerFactor 8
CacheEnable disk /
CacheRoot {folder}/cache
CacheDirLevels 2
CacheDirLength 1
CacheMaxFileSize 1073741824
ProxyPass / http://{origin}/ enablereuse=on
",
        listen.ip(),
        128 * description.cores,
        cores = description.cores,
    );
    Plan {
        folders: vec!["cache"],
        files: vec![("apache2.conf", file)],
        prepare: None,
        serve: vec![
            "-f".to_owned(),
            description.path("apache2.conf"),
            "-D".to_owned(),
            "FOREGROUND".to_owned(),
        ],
        helper: Some(cleaner(description)),
        notes: vec![
            "its disk cache may have more than its limit for a minute: htcacheclean beside it, which keeps the limit, looks once a minute",
            "no memory cache of its own: the page cache is its memory",
        ],
    }
}

/// What keeps the limit of its cache, as Debian starts it, and as often as it can.
fn cleaner(description: &Description) -> Helper {
    let number = description.folder.join("htcacheclean.pid");
    let cache = description.cache();
    let limit = format!("-l{}K", description.disk.0 >> 10);
    let words = ["-d1", "-n", &limit, "-p", &cache.to_string_lossy(), "-P", &number.to_string_lossy()];
    let arguments = words.map(str::to_owned).to_vec();
    Helper { program: "htcacheclean", package: "apache2-utils", arguments, number }
}
