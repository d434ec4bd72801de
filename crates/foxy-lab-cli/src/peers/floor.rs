//! Sets up the floor, the smallest caching proxy, as a lower bound for the CPU time of any proxy.
//! The floor is part of foxy's program.

use super::{Description, Holding, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen.to_string(), description.origin.to_string());
    let (cache, size) = (description.cache().display().to_string(), description.disk.0.to_string());
    let serve =
        ["floor", "--listen", &listen, "--origin", &origin, "--store", &cache, "--size", &size];
    let mut serve = serve.map(str::to_owned).to_vec();
    if description.holding == Holding::Memory {
        serve.push("--small-in-memory".to_owned());
    }
    let notes = vec!["a lower bound, not a proxy to use: it checks nothing and never expires"];
    Plan { folders: vec!["cache"], serve, notes, ..Plan::default() }
}
