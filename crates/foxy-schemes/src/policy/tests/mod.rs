//! Tests all policies: their common properties, and their agreement with simple models.

mod models;

use super::{POLICIES, Policy, PolicyName, PolicySettings};
use foxy_base::Random;
use models::Model;
use std::collections::BTreeMap;

const CAPACITY: u64 = 4000;
const SETTINGS: PolicySettings = PolicySettings { capacity: CAPACITY, object_limit: 150 };

/// A small cache that owns a policy. It contains the entries by key, the policy, and an optional
/// simple model whose victims must be the same.
struct Owner {
    policy: Box<dyn Policy>,
    model: Option<Box<dyn Model>>,
    entry_of: BTreeMap<u64, u32>,
    sizes: BTreeMap<u32, (u64, u64)>,
    vacant: Vec<u32>,
    used: u64,
    /// Name of the policy and seed of the run, for failure messages.
    run: String,
}

impl Owner {
    fn new(name: PolicyName, model: Option<Box<dyn Model>>, seed: u64) -> Self {
        Self {
            policy: name.make(&SETTINGS),
            model,
            entry_of: BTreeMap::new(),
            sizes: BTreeMap::new(),
            vacant: Vec::new(),
            used: 0,
            run: format!("{name}, seed {seed}"),
        }
    }

    fn insert(&mut self, key: u64, size: u64) {
        let entry =
            self.vacant.pop().unwrap_or_else(|| u32::try_from(self.sizes.len()).expect("few"));
        let hash = foxy_base::random::split_mix(&mut key.clone());
        self.policy.insert(entry, hash, size);
        if let Some(model) = &mut self.model {
            model.insert(entry, hash, size);
        }
        self.entry_of.insert(key, entry);
        self.sizes.insert(entry, (key, size));
        self.used += size;
    }

    fn touch(&mut self, entry: u32) {
        self.policy.touch(entry);
        if let Some(model) = &mut self.model {
            model.touch(entry);
        }
    }

    fn remove(&mut self, entry: u32) {
        self.policy.remove(entry);
        if let Some(model) = &mut self.model {
            model.remove(entry);
        }
        let (key, size) = self.sizes.remove(&entry).expect("victims are present");
        self.entry_of.remove(&key);
        self.used -= size;
        self.vacant.push(entry);
    }

    fn victim(&mut self) -> Option<u32> {
        let victim = self.policy.victim();
        assert_eq!(self.policy.victim(), victim, "asking again changes nothing; {}", self.run);
        if let Some(model) = &mut self.model {
            assert_eq!(victim, model.victim(), "the model names another; {}", self.run);
        }
        if let Some(victim) = victim {
            assert!(self.sizes.contains_key(&victim), "{victim} is not present; {}", self.run);
        }
        victim
    }

    fn make_room(&mut self) {
        while self.used > CAPACITY {
            let victim = self.victim().expect("something takes the room");
            self.remove(victim);
        }
    }

    fn some_entry(&self, random: &mut Random) -> Option<u32> {
        let nth = usize::try_from(random.below(self.sizes.len() as u64)).expect("few");
        self.sizes.keys().nth(nth).copied()
    }

    /// Looks up random keys, low keys more often, and inserts missing keys. Also removes random
    /// entries. Sometimes evicts an entry although no insertion needs space.
    fn drive(&mut self, random: &mut Random, steps: u32) {
        for _ in 0..steps {
            let reach = random.below(400);
            let key = random.below(1 + reach);
            match self.entry_of.get(&key) {
                Some(&entry) => self.touch(entry),
                None => {
                    let size =
                        if random.chance(0.02) { random.below(1500) } else { random.below(120) };
                    if self.policy.admits(size) {
                        self.insert(key, size);
                        self.make_room();
                    }
                }
            }
            if random.chance(0.03)
                && let Some(entry) = self.some_entry(random)
            {
                self.remove(entry);
            }
            if random.chance(0.02)
                && let Some(victim) = self.victim()
            {
                self.remove(victim);
            }
        }
    }
}

#[test]
fn each_policy_names_the_victims_its_model_names() {
    for row in POLICIES {
        for seed in 0..6 {
            let mut owner = Owner::new(row.name, Some(models::of(row.name)), seed);
            owner.drive(&mut Random::new(seed), 4000);
        }
    }
}

#[test]
fn every_entry_of_every_policy_can_be_evicted_and_then_there_is_no_victim() {
    for row in POLICIES {
        for seed in 10..16 {
            let mut owner = Owner::new(row.name, None, seed);
            owner.drive(&mut Random::new(seed), 3000);
            assert!(!owner.sizes.is_empty());
            while let Some(victim) = owner.victim() {
                owner.remove(victim);
            }
            assert!(owner.sizes.is_empty(), "forgot {:?}; {}", owner.sizes, owner.run);
        }
    }
}

#[test]
fn every_policy_lists_each_entry_once_and_a_list_is_in_order_of_use() {
    for row in POLICIES {
        for seed in 30..33 {
            let mut owner = Owner::new(row.name, None, seed);
            owner.drive(&mut Random::new(seed), 2000);
            let listed = owner.policy.coldest_first();
            let mut sorted = listed.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, owner.sizes.keys().copied().collect::<Vec<_>>(), "{}", owner.run);
            if matches!(
                row.name,
                PolicyName::Lru | PolicyName::HeapLru | PolicyName::Gdsf | PolicyName::Lfuda
            ) {
                for entry in listed {
                    assert_eq!(owner.victim(), Some(entry), "{}", owner.run);
                    owner.remove(entry);
                }
            }
        }
    }
}

#[test]
fn any_entry_of_every_policy_can_be_removed_at_any_time() {
    for row in POLICIES {
        for seed in 20..26 {
            let mut random = Random::new(seed);
            let mut owner = Owner::new(row.name, None, seed);
            owner.drive(&mut random, 2000);
            while let Some(entry) = owner.some_entry(&mut random) {
                owner.remove(entry);
                owner.victim();
            }
            assert_eq!(owner.policy.victim(), None, "{}", owner.run);
        }
    }
}

#[test]
fn every_name_reads_back_as_itself() {
    for row in POLICIES {
        assert_eq!(row.text.parse(), Ok(row.name));
        assert_eq!(row.name.to_string(), row.text);
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = "coffee".parse::<PolicyName>().expect_err("no such policy");
    assert!(error.to_string().contains("lru"), "{error}");
}

#[test]
fn only_the_threshold_policy_refuses_by_size() {
    for row in POLICIES {
        let policy = row.name.make(&SETTINGS);
        assert!(policy.admits(150), "{}", row.text);
        assert_eq!(policy.admits(151), row.name != PolicyName::LruThreshold, "{}", row.text);
    }
}
