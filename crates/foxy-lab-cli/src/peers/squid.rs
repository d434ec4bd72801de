//! Sets up Squid as one process. The store type of its disk cache is aufs, Squid's usual type, or
//! the type that the description names.

use super::secured::TlsFiles;
use super::{Description, Plan};

/// The store type for no disk cache at all, as in Table D-6 of *Squid: The Definitive Guide* (paper
/// 000 in docs/figures.md).
const NO_DISK: &str = "none";

/// Below this cache size in MB, the cache has 256 folders instead of 4,096. The 4,096 folders would
/// take 16 MB.
const SMALL: u64 = 128;

pub fn stores() -> Vec<&'static str> {
    vec!["aufs", "ufs", "diskd", "rock", NO_DISK]
}

fn cache_line(store: &str, folder: &str, megabytes: u64) -> String {
    match store {
        NO_DISK => String::new(),
        "rock" => format!("cache_dir rock {folder} {megabytes}"),
        file_for_each_object => {
            let second_level = if megabytes < SMALL { 16 } else { 256 };
            format!("cache_dir {file_for_each_object} {folder} {megabytes} 16 {second_level}")
        }
    }
}

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let megabytes = |size: u64| (size >> 20).max(1);
    let (disk, memory) = (megabytes(description.on_each_disk().0), megabytes(description.memory.0));
    let store = description.store.unwrap_or("aufs");
    let caches = description.for_each_cache(|_, cache| cache_line(store, &cache.to_string(), disk));
    let (inward, own, outward) = match description.secured() {
        None => (format!("http_port {listen}"), String::new(), String::new()),
        Some(files) => tls(&listen.to_string(), &files),
    };
    let file = format!(
        "{inward} accel defaultsite={origin}{own}
cache_peer {} parent {} 0 no-query no-digest no-netdb-exchange originserver{outward}
http_access allow all
never_direct allow all
{caches}cache_mem {memory} MB
maximum_object_size 1 GB
access_log none
cache_store_log none
cache_log {folder}/messages
coredump_dir {folder}
pid_filename none
netdb_filename none
pinger_enable off
shutdown_lifetime 1 seconds
",
        origin.ip(),
        origin.port()
    );
    let limits = description.papers.iter().flat_map(|_| LIMITS);
    // Squid names its shared memory after the service name (`-n`). With the default name, two
    // Squids that start at the same time refuse each other.
    let name = format!("foxy{}", listen.port());
    let arguments = |more: &[&str]| {
        let all = ["-N", "-n", &name].into_iter().chain(more.iter().copied());
        all.map(str::to_owned).chain(["-f".to_owned(), description.path("squid.conf")]).collect()
    };
    Plan {
        folders: vec!["cache"],
        files: vec![("squid.conf", file)],
        prepare: Some(arguments(&["-z"])),
        serve: arguments(&[]),
        helper: None,
        notes: ["one process, because several processes cannot share an aufs store"]
            .into_iter()
            .chain(limits)
            .collect(),
    }
}

fn tls(
    listen: &str,
    TlsFiles { certificate, key, authority }: &TlsFiles,
) -> (String, String, String) {
    (
        format!("https_port {listen}"),
        format!(" tls-cert={certificate} tls-key={key}"),
        format!(" tls tls-cafile={authority} tls-default-ca=off tls-options=NORMAL:-VERS-TLS1.3"),
    )
}

const LIMITS: [&str; 3] = [
    "does not verify its origin, because Squid with GnuTLS accepts every certificate",
    "uses TLS 1.2 with its origin, because over TLS 1.3 its requests fail (ERR_READ_ERROR)",
    "no HTTP/2",
];
