//! Sets up Apache with `mod_cache_disk` and the event MPM. Apache stores a pair of files for each
//! object, and has no memory cache except the page cache.

use super::helper::Helper;
use super::secured::{NAME, TlsFiles};
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

const SECURE: [(&str, &str); 2] = [("ssl_module", "mod_ssl"), ("http2_module", "mod_http2")];

pub fn plan(description: &Description) -> Plan {
    let (listen, secured) = (description.listen, description.secured());
    let folder = description.folder.display();
    let mut file = String::new();
    let secure = SECURE.iter().filter(|_| secured.is_some());
    for (module, name) in MODULES.iter().chain(secure) {
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
ProxyPass / {}/ enablereuse=on
{}",
        listen.ip(),
        128 * description.cores,
        origin(description),
        secured.map(|files| tls(&files)).unwrap_or_default(),
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
            "the disk cache may exceed the limit for a minute, because htcacheclean enforces the \
             limit once a minute",
            "no memory cache of its own: the page cache is its memory",
        ],
    }
}

/// Returns the URL of the origin. Apache accepts a certificate only for a host name and not for an
/// address. So the URL of a TLS origin has a host name.
fn origin(description: &Description) -> String {
    let origin = description.origin;
    match description.papers {
        None => format!("http://{origin}"),
        Some(_) => format!("https://{NAME}:{}", origin.port()),
    }
}

fn tls(TlsFiles { certificate, key, authority }: &TlsFiles) -> String {
    format!(
        "Protocols h2 http/1.1
SSLEngine on
SSLCertificateFile {certificate}
SSLCertificateKeyFile {key}
SSLProxyEngine on
SSLProxyVerify require
SSLProxyCACertificateFile {authority}
"
    )
}

/// Runs Apache's cache cleaner `htcacheclean` with Debian's arguments, as often as the program
/// permits.
fn cleaner(description: &Description) -> Helper {
    let number = description.folder.join("htcacheclean.pid");
    let cache = description.cache();
    let limit = format!("-l{}K", description.disk.0 >> 10);
    let words =
        ["-d1", "-n", &limit, "-p", &cache.to_string_lossy(), "-P", &number.to_string_lossy()];
    let arguments = words.map(str::to_owned).to_vec();
    Helper { program: "htcacheclean", package: "apache2-utils", arguments, number }
}
