//! foxy itself, as a user would start it: on its defaults but for what the description says.

use super::{Description, Plan};

pub fn plan(description: &Description) -> Plan {
    let (listen, origin) = (description.listen, description.origin);
    let mut serve = ["serve", "--listen", &listen.to_string(), "--admin", "off"].map(str::to_owned).to_vec();
    serve.extend(["--origin".to_owned(), format!("http://{origin}")]);
    for cache in description.caches() {
        serve.extend(["--store".to_owned(), cache.display().to_string()]);
    }
    let (size, memory) = (description.on_each_disk().0.to_string(), description.memory.0.to_string());
    serve.extend(["--size", &size, "--memory", &memory, "--access-log", "off"].map(str::to_owned));
    Plan { folders: vec!["cache"], serve, ..Plan::default() }
}
