//! Sets up Varnish. If the description asks for a memory cache, Varnish uses memory storage, else
//! file storage. With several disks, Varnish uses their storages in turn.

use super::{Description, Holding, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let file = format!(
        "vcl 4.1;

backend origin {{
    .host = \"{}\";
    .port = \"{}\";
}}
",
        origin.ip(),
        origin.port()
    );
    let size = description.on_each_disk().0;
    let storages: Vec<String> = match description.holding {
        Holding::Memory => vec![format!("malloc,{}", description.memory.0)],
        Holding::Disk => {
            let caches = description.caches();
            caches
                .iter()
                .map(|cache| format!("file,{},{size}", cache.join("storage").display()))
                .collect()
        }
    };
    let serve = [
        "-F",
        "-j",
        "none",
        "-n",
        &description.path("work"),
        "-a",
        &listen.to_string(),
        "-f",
        &description.path("default.vcl"),
    ];
    let storages = storages.into_iter().flat_map(|storage| ["-s".to_owned(), storage]);
    let notes = match description.holding {
        Holding::Memory => vec!["stores in memory only"],
        Holding::Disk => {
            vec![
                "stores objects in a mapped file: the page cache is its memory, and a restart \
                 empties the cache",
            ]
        }
    };
    Plan {
        folders: vec!["cache", "work"],
        files: vec![("default.vcl", file)],
        prepare: None,
        serve: serve.map(str::to_owned).into_iter().chain(storages).collect(),
        helper: None,
        notes,
    }
}
