//! Sets up Apache Traffic Server in its own run root (a folder tree for one instance). The disk
//! cache of the server is one file per disk. When the file is full, the server overwrites it from
//! the beginning.

use super::secured::{NAME, TlsFiles};
use super::{Description, Plan};

const EMPTY: [&str; 8] = [
    "etc/cache.config",
    "etc/hosting.config",
    "etc/logging.yaml",
    "etc/parent.config",
    "etc/plugin.config",
    "etc/sni.yaml",
    "etc/splitdns.config",
    "etc/volume.config",
];

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let run_root = format!(
        "prefix: {folder}
exec_prefix: /usr
bindir: /usr/bin
sbindir: /usr/bin
sysconfdir: {folder}/etc
datadir: {folder}/work
includedir: /usr/include
libdir: /usr/lib
libexecdir: /usr/lib/trafficserver/modules
localstatedir: {folder}/work
runtimedir: {folder}/work
logdir: {folder}/log
cachedir: {folder}/cache
"
    );
    let (ends, certificates, tls) = match description.secured() {
        None => Default::default(),
        Some(files) => tls(&files),
    };
    let records = format!(
        "CONFIG proxy.config.http.server_ports STRING {}{ends}:ip-in={}
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT {}
CONFIG proxy.config.cache.ram_cache.size INT {}
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.admin.user_id STRING #-1
{tls}",
        listen.port(),
        listen.ip(),
        description.cores,
        description.memory.0
    );
    let allow = "ip_allow:
  - apply: in
    ip_addrs: 0/0
    action: allow
    methods: ALL
  - apply: in
    ip_addrs: ::/0
    action: allow
    methods: ALL
";
    let size = description.on_each_disk().0;
    let storage = description.for_each_cache(|_, cache| format!("{cache} {size}"));
    let mut files = vec![
        ("runroot.yaml", run_root),
        ("etc/records.config", records),
        ("etc/ip_allow.yaml", allow.to_owned()),
        ("etc/storage.config", storage),
        ("etc/remap.config", format!("map / {}://{origin}/\n", description.scheme())),
        ("etc/ssl_multicert.config", certificates),
    ];
    files.extend(EMPTY.map(|name| (name, String::new())));
    Plan {
        folders: vec!["cache", "etc", "log", "work"],
        files,
        prepare: None,
        serve: vec![format!("--run-root={folder}")],
        helper: None,
        notes: Vec::new(),
    }
}

fn tls(TlsFiles { certificate, key, authority }: &TlsFiles) -> (&'static str, String, String) {
    let certificates = format!("dest_ip=* ssl_cert_name={certificate} ssl_key_name={key}\n");
    let outward = format!(
        "CONFIG proxy.config.ssl.server.cert.path STRING /
CONFIG proxy.config.ssl.server.private_key.path STRING /
CONFIG proxy.config.ssl.client.CA.cert.path STRING /
CONFIG proxy.config.ssl.client.CA.cert.filename STRING {authority}
CONFIG proxy.config.ssl.client.verify.server.policy STRING ENFORCED
CONFIG proxy.config.ssl.client.verify.server.properties STRING ALL
CONFIG proxy.config.ssl.client.sni_policy STRING @{NAME}
"
    );
    (":ssl", certificates, outward)
}
