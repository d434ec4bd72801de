//! Apache with `mod_cache_disk` under the event MPM: a pair of files for each object; the page cache is its memory.

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
        notes: vec![
            "no limit on its disk cache: htcacheclean, which keeps one, runs once a minute at most and is not started",
            "no memory cache of its own: the page cache is its memory",
        ],
    }
}
