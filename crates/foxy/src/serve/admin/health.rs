//! Reports when a server of an origin or another node of the fleet stops working, and when it works
//! again.

use crate::serve::status::ProxyStatus;
use crate::terminal::{self, Level};
use std::collections::BTreeSet;

/// The servers and nodes that did not work at the last look.
#[derive(Debug, Default)]
pub struct HealthChanges {
    down: BTreeSet<String>,
}

impl HealthChanges {
    /// Reports the changes since the last look.
    pub fn report(&mut self, status: &ProxyStatus) {
        let servers = status.proxy.servers().into_iter();
        let servers = servers
            .map(|it| (format!("server {} of origin `{}`", it.server, it.origin), !it.rests));
        let nodes = status.fleet.iter().flat_map(|fleet| fleet.others());
        let nodes = nodes.map(|(name, is_lost)| (format!("node `{name}` of the fleet"), !is_lost));
        for (name, works) in self.changes(servers.chain(nodes).collect()) {
            if works {
                terminal::report(Level::Info, &format!("foxy: {name} is up again"));
            } else {
                terminal::report(Level::Warning, &format!("foxy: {name} is down"));
            }
        }
    }

    /// Returns the servers and nodes whose state has changed since the last call, and whether each
    /// works now. A server or node that is no longer configured has not changed.
    fn changes(&mut self, now: Vec<(String, bool)>) -> Vec<(String, bool)> {
        let is_new = |(name, works): &(String, bool)| self.down.contains(name) == *works;
        let changed = now.iter().filter(|state| is_new(state)).cloned().collect();
        let down = now.into_iter().filter(|(_, works)| !works);
        self.down = down.map(|(name, _)| name).collect();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_reported_once() {
        let mut health = HealthChanges::default();
        let state = |name: &str, works| (name.to_owned(), works);
        assert_eq!(health.changes(vec![state("a", true), state("b", true)]), []);
        let down = vec![state("a", true), state("b", false)];
        assert_eq!(health.changes(down.clone()), [state("b", false)]);
        assert_eq!(health.changes(down), []);
        assert_eq!(health.changes(vec![state("a", true)]), [], "b is no longer configured");
        assert_eq!(health.changes(vec![state("a", false)]), [state("a", false)]);
        assert_eq!(health.changes(vec![state("a", true)]), [state("a", true)]);
    }
}
