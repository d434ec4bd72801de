//! A least-recently-used (LRU) list of the entries of an array. The entries themselves store the
//! links of the list. So every operation takes constant time and allocates no memory.

pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    colder: u32,
    hotter: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { colder: NONE, hotter: NONE }
    }
}

/// The array of entries, through which the list reads and changes the links of each entry.
pub trait LinkStore {
    fn links(&mut self, index: u32) -> &mut Links;
}

impl LinkStore for Vec<Links> {
    fn links(&mut self, index: u32) -> &mut Links {
        &mut self[index as usize]
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Lru {
    coldest: u32,
    hottest: u32,
}

impl Default for Lru {
    fn default() -> Self {
        Self { coldest: NONE, hottest: NONE }
    }
}

impl Lru {
    /// Returns the least recently used entry.
    pub fn coldest(&self) -> Option<u32> {
        (self.coldest != NONE).then_some(self.coldest)
    }

    /// Returns the most recently used entry.
    pub fn hottest(&self) -> Option<u32> {
        (self.hottest != NONE).then_some(self.hottest)
    }

    /// Returns the neighbour of `index` that was used more recently.
    pub fn hotter(store: &mut impl LinkStore, index: u32) -> Option<u32> {
        let hotter = store.links(index).hotter;
        (hotter != NONE).then_some(hotter)
    }

    pub fn coldest_first(&self, store: &mut impl LinkStore) -> Vec<u32> {
        std::iter::successors(self.coldest(), |&index| Self::hotter(store, index)).collect()
    }

    /// Adds an entry as the most recently used. The entry must not be in the list.
    pub fn push(&mut self, store: &mut impl LinkStore, index: u32) {
        *store.links(index) = Links { colder: self.hottest, hotter: NONE };
        match self.hottest {
            NONE => self.coldest = index,
            old => store.links(old).hotter = index,
        }
        self.hottest = index;
    }

    pub fn remove(&mut self, store: &mut impl LinkStore, index: u32) {
        let Links { colder, hotter } = *store.links(index);
        match colder {
            NONE => self.coldest = hotter,
            other => store.links(other).hotter = hotter,
        }
        match hotter {
            NONE => self.hottest = colder,
            other => store.links(other).colder = colder,
        }
        *store.links(index) = Links::default();
    }

    pub fn touch(&mut self, store: &mut impl LinkStore, index: u32) {
        if self.hottest != index {
            self.remove(store, index);
            self.push(store, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn the_lru_orders_as_a_plain_list_does() {
        let mut random = Random::new(11);
        let (mut store, mut lru, mut model) =
            (vec![Links::default(); 32], Lru::default(), Vec::new());
        for step in 0..10_000 {
            let index = u32::try_from(random.below(32)).expect("small");
            match model.iter().position(|&other| other == index) {
                None => lru.push(&mut store, index),
                Some(place) => {
                    model.remove(place);
                    if random.chance(0.3) {
                        lru.remove(&mut store, index);
                        continue;
                    }
                    lru.touch(&mut store, index);
                }
            }
            model.push(index);
            let mut walk = Vec::new();
            let mut next = lru.coldest();
            while let Some(index) = next {
                walk.push(index);
                next = Lru::hotter(&mut store, index);
            }
            assert_eq!(walk, model, "seed 11, step {step}");
        }
    }
}
