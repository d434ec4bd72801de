//! foxy itself, as a user would start it: on its defaults but for what the description says.

use super::{Description, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let serve = [
        "serve",
        "--listen",
        &listen.to_string(),
        "--admin",
        "off",
        "--origin",
        &format!("http://{origin}"),
        "--store",
        &description.path("cache"),
        "--size",
        &description.disk.0.to_string(),
        "--memory",
        &description.memory.0.to_string(),
        "--access-log",
        "off",
    ];
    Plan { folders: vec!["cache"], serve: serve.map(str::to_owned).to_vec(), ..Plan::default() }
}
