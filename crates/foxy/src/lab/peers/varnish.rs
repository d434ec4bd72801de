//! Varnish: memory for what is meant to lie in memory, its file storage for what is meant to lie on disk.

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
    let storage = match description.holding {
        Holding::Memory => format!("malloc,{}", description.memory.0),
        Holding::Disk => format!("file,{},{}", description.path("cache/storage"), description.disk.0),
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
        "-s",
        &storage,
    ];
    let notes = match description.holding {
        Holding::Memory => vec!["stores in memory only"],
        Holding::Disk => {
            vec!["maps its storage file: the page cache is its memory, and nothing outlives a restart"]
        }
    };
    Plan {
        folders: vec!["cache", "work"],
        files: vec![("default.vcl", file)],
        prepare: None,
        serve: serve.map(str::to_owned).to_vec(),
        notes,
    }
}
