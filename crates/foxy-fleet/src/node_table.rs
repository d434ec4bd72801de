//! The members of a fleet, each with a number and a state. If the list of members changes, a new
//! table replaces the old. It keeps the number of each name, so that requests in progress keep
//! their nodes.

use crate::member::{Member, Members};
use crate::nodes::NodeState;
use foxy_base::Rendezvous;
use foxy_proxy::upstream::fleet::FleetNode;
use std::sync::Arc;

/// Largest number of former members whose numbers are remembered.
const MAX_FORMER: usize = 256;

/// The present members of a fleet, and former members that requests in progress may still use.
#[derive(Debug)]
pub struct NodeTable {
    members: Members,
    rendezvous: Rendezvous,
    /// The present members, in the order of `members`.
    present: Vec<Numbered>,
    /// Former members: names that earlier lists contained. The member that left most recently is
    /// the last.
    former: Vec<Numbered>,
    /// The number that the next new name receives.
    next: usize,
}

#[derive(Clone, Debug)]
struct Numbered {
    node: Arc<FleetNode>,
    state: Arc<NodeState>,
}

/// A present member of the fleet, with its state.
#[derive(Clone, Copy, Debug)]
pub struct ListedNode<'a> {
    pub member: &'a Member,
    pub node: &'a Arc<FleetNode>,
    pub state: &'a Arc<NodeState>,
    /// True if this member is this node itself.
    pub is_own: bool,
}

impl NodeTable {
    /// Creates the first table of a process. The number of a member is its position in the list.
    pub fn new(members: Members) -> Self {
        Self::with(members, Vec::new(), 0)
    }

    /// Creates the next table after the operator changed the list to `members`.
    pub fn followed_by(&self, members: Members) -> Self {
        let known = self.former.iter().chain(&self.present).cloned().collect();
        Self::with(members, known, self.next)
    }

    fn with(members: Members, mut known: Vec<Numbered>, mut next: usize) -> Self {
        let mut numbered = |member: &Member| {
            let name = member.id.as_str();
            let known = known.extract_if(.., |known| *known.node.name == *name).next();
            let number = known.as_ref().map_or(next, |known| known.node.number);
            next = next.max(number + 1);
            let (host, port) = (member.host.clone(), member.port);
            let node = Arc::new(FleetNode { number, name: name.into(), host, port });
            Numbered { node, state: known.map(|known| known.state).unwrap_or_default() }
        };
        let present = members.all().iter().map(&mut numbered).collect();
        let too_many = known.len().saturating_sub(MAX_FORMER);
        known.drain(..too_many);
        let weights = members.all().iter().map(|member| (member.id.as_str(), member.weight));
        let rendezvous = Rendezvous::new(weights);
        Self { members, rendezvous, present, former: known, next }
    }

    pub fn members(&self) -> &Members {
        &self.members
    }

    fn seat(&self, position: usize) -> ListedNode<'_> {
        let Numbered { node, state } = &self.present[position];
        let is_own = position == self.members.own_position();
        ListedNode { member: &self.members.all()[position], node, state, is_own }
    }

    /// Returns all present members, in the order of the list.
    pub fn all(&self) -> impl Iterator<Item = ListedNode<'_>> {
        (0..self.present.len()).map(|position| self.seat(position))
    }

    /// Returns this node as other nodes reach it.
    pub fn own(&self) -> &Arc<FleetNode> {
        &self.present[self.members.own_position()].node
    }

    fn numbered(&self, number: usize) -> Option<&Numbered> {
        let mut all = self.present.iter().chain(&self.former);
        all.find(|known| known.node.number == number)
    }

    /// Returns the present or former member with this number.
    pub fn node(&self, number: usize) -> Option<&Arc<FleetNode>> {
        self.numbered(number).map(|known| &known.node)
    }

    /// Returns the state of the present or former member with this number.
    pub fn state(&self, number: usize) -> Option<&Arc<NodeState>> {
        self.numbered(number).map(|known| &known.state)
    }

    /// Returns true if a present member has this number.
    pub fn is_member(&self, number: usize) -> bool {
        self.present.iter().any(|known| known.node.number == number)
    }

    /// Returns the two best present members for a key: the owner and its first substitute. Only
    /// members that `counts` accepts are candidates. A member that joins or leaves has only a part
    /// of its weight.
    pub fn best_two(
        &self,
        key: &[u8],
        counts: impl Fn(&ListedNode<'_>) -> bool,
    ) -> [Option<ListedNode<'_>>; 2] {
        let part = |seat: &ListedNode<'_>| seat.state.standing().part;
        // If all candidates have a weight of zero now, each counts with its whole weight.
        let has_weight = self.all().any(|seat| counts(&seat) && part(&seat) > 0);
        self.best_of(key, |seat| match counts(seat) {
            true if has_weight => part(seat),
            is_counted => u32::from(is_counted),
        })
    }

    /// Returns the two best present members for a key, as if all members had their whole weight,
    /// even while they join or leave.
    pub fn best_two_by_weight(
        &self,
        key: &[u8],
        counts: impl Fn(&ListedNode<'_>) -> bool,
    ) -> [Option<ListedNode<'_>>; 2] {
        self.best_of(key, |seat| u32::from(counts(seat)))
    }

    fn best_of(
        &self,
        key: &[u8],
        part: impl Fn(&ListedNode<'_>) -> u32,
    ) -> [Option<ListedNode<'_>>; 2] {
        let best = self.rendezvous.best_two(key, |position| part(&self.seat(position)));
        best.map(|position| position.map(|position| self.seat(position)))
    }
}
