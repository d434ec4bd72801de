//! Squid: one process with the aufs store, its usual choice for a disk cache.

use super::{Description, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let folder = description.folder.display();
    let megabytes = |size: u64| (size >> 20).max(1);
    let (disk, memory) = (megabytes(description.on_each_disk().0), megabytes(description.memory.0));
    let caches = description.for_each_cache(|_, cache| format!("cache_dir aufs {cache} {disk} 16 256"));
    let file = format!(
        "http_port {listen} accel defaultsite={origin}
cache_peer {} parent {} 0 no-query no-digest no-netdb-exchange originserver
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
    let arguments = |more: &[&str]| {
        let all = ["-N"].into_iter().chain(more.iter().copied());
        all.map(str::to_owned).chain(["-f".to_owned(), description.path("squid.conf")]).collect()
    };
    Plan {
        folders: vec!["cache"],
        files: vec![("squid.conf", file)],
        prepare: Some(arguments(&["-z"])),
        serve: arguments(&[]),
        helper: None,
        notes: vec!["one process: its aufs store has no other way"],
    }
}
