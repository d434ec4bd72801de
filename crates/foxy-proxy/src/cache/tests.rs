//! Tests which answers the cache may give while fetches and invalidations overlap, with a store
//! that is fast, slow or failing.

use super::*;
use crate::cache::purge::{Order, Purges, Scope, Strength};
use crate::cache::storage::{ObjectStore, Reply};
use foxy_base::WallTime;
use foxy_http::ResponseHead;
use foxy_rules::{Policy, StoredTimes};
use foxy_store::{AbsentReason, Answer, Key, RefusedReason};
use foxy_testkit::store::Records;
use std::time::Duration;

/// The way in which the test store reacts to one kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Temper {
    Willing,
    Busy,
    Silent,
}

/// A store in memory. The test chooses how the store reacts to each kind of request.
struct MoodyStore {
    records: Records,
    silent: Mutex<Vec<Reply>>,
    gets: Mutex<Temper>,
    removals: Mutex<Temper>,
}

impl MoodyStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            records: Records::default(),
            silent: Mutex::default(),
            gets: Mutex::new(Temper::Willing),
            removals: Mutex::new(Temper::Willing),
        })
    }

    fn set_gets(&self, temper: Temper) {
        *self.gets.lock().expect("sound") = temper;
    }

    fn set_removals(&self, temper: Temper) {
        *self.removals.lock().expect("sound") = temper;
    }

    fn hold(&self, reply: Reply) {
        self.silent.lock().expect("sound").push(reply);
    }
}

impl ObjectStore for MoodyStore {
    fn get(&self, key: Key, reply: Reply) {
        match *self.gets.lock().expect("sound") {
            Temper::Willing => reply(self.records.get(key)),
            Temper::Busy => reply(Answer::Absent(AbsentReason::Busy)),
            Temper::Silent => self.hold(reply),
        }
    }

    fn put(&self, key: Key, record: Record, _hint: PlacementHint, reply: Reply) {
        reply(self.records.put(key, record));
    }

    fn remove(&self, key: Key, reply: Reply) {
        match *self.removals.lock().expect("sound") {
            Temper::Willing => reply(self.records.remove(key)),
            Temper::Busy => reply(Answer::Refused(RefusedReason::Busy)),
            Temper::Silent => self.hold(reply),
        }
    }
}

struct Scene {
    store: Arc<MoodyStore>,
    cache: Cache,
    counters: Arc<Counters>,
    url: CacheKey,
    purges: Purges,
}

impl Scene {
    fn new() -> Self {
        let store = MoodyStore::new();
        let purges = Purges::in_memory();
        let storage =
            Storage::new(store.clone(), Duration::from_millis(20), Default::default(), 1 << 20);
        let cache = Cache::new(
            MemoryTier::new(16 << 20),
            (1 << 20, 1 << 20),
            Some(storage),
            Arc::clone(&purges.book),
            None,
            1,
        );
        Self { store, cache, counters: Arc::default(), url: CacheKey::new("http://a/"), purges }
    }

    fn response(key: &CacheKey, body: &'static str) -> Arc<Stored> {
        let times = StoredTimes { received: WallTime(0), initial_age: 0 };
        let length = body.len() as u64;
        let body = StoredBody::Whole(Bytes::from_static(body.as_bytes()));
        Arc::new(Stored::new(
            key.text.clone(),
            &ResponseHead::new(200),
            Policy::default(),
            times,
            length,
            body,
        ))
    }

    fn watch(&self) -> Watch {
        self.cache.watch(&self.url)
    }

    fn add(&self, body: &'static str, watch: &Watch) {
        let stored = Self::response(&self.url, body);
        let placement = self.url.clone().into();
        self.cache.add(&self.url, &placement, &stored, watch.fetched(), &self.counters);
    }

    fn purge(&self, strength: Strength) {
        let order = Order { scope: Scope::url(&self.url), strength, at: WallTime(5000) };
        self.purges.keeper.purge(vec![order], Box::new(|answer| assert!(answer.is_ok())));
    }

    fn forget_memory(&self) {
        self.cache.memory.remove(self.url.hash);
    }

    /// Returns the body that a request receives from the cache.
    async fn get(&self, request: &Headers) -> Option<Bytes> {
        let found = match self.cache.in_memory(&self.url, request) {
            InMemory::Found(found) => found,
            InMemory::Ask(key, list) => {
                self.cache
                    .in_store(&self.url, &self.watch(), key, list, request, &self.counters)
                    .await
            }
        };
        match found {
            Found::Response(stored, _) => match &stored.body {
                StoredBody::Whole(body) => Some(body.clone()),
                StoredBody::Parts { .. } => None,
            },
            Found::Varies(_) | Found::Nothing | Found::Unknown => None,
        }
    }

    async fn body(&self) -> Option<Bytes> {
        self.get(&Headers::new()).await
    }
}

#[tokio::test]
async fn what_is_added_is_found_in_memory_and_in_the_store() {
    let scene = Scene::new();
    scene.add("one", &scene.watch());
    assert_eq!(scene.body().await.as_deref(), Some(&b"one"[..]));
    scene.forget_memory();
    assert_eq!(scene.body().await.as_deref(), Some(&b"one"[..]));
    scene.store.set_gets(Temper::Busy);
    assert_eq!(
        scene.body().await.as_deref(),
        Some(&b"one"[..]),
        "what the store gave is not kept in memory"
    );
}

#[tokio::test]
async fn a_busy_or_silent_store_is_a_miss() {
    let scene = Scene::new();
    scene.add("one", &scene.watch());
    scene.forget_memory();
    scene.store.set_gets(Temper::Busy);
    assert_eq!(scene.body().await, None);
    scene.store.set_gets(Temper::Silent);
    assert_eq!(scene.body().await, None);
    assert_eq!(scene.counters.get(Counter::StoreTimeouts), 1);
}

#[tokio::test]
async fn a_record_of_another_url_is_a_miss() {
    let scene = Scene::new();
    let other = CacheKey { text: Bytes::from_static(b"http://b/"), hash: scene.url.hash };
    let stored = Scene::response(&other, "theirs");
    let watch = scene.cache.watch(&other);
    let placement = other.clone().into();
    scene.cache.add(&other, &placement, &stored, watch.fetched(), &scene.counters);
    assert_eq!(scene.body().await, None, "from memory");
    scene.forget_memory();
    assert_eq!(scene.body().await, None, "from the store");
}

#[tokio::test]
async fn a_fill_that_began_before_an_invalidation_adds_nothing() {
    let scene = Scene::new();
    let watch = scene.watch();
    scene.cache.invalidate(&scene.url, &scene.counters).await;
    scene.add("old", &watch);
    assert_eq!(scene.body().await, None);
    scene.add("new", &scene.watch());
    assert_eq!(scene.body().await.as_deref(), Some(&b"new"[..]));
}

#[tokio::test]
async fn what_is_superseded_while_memory_has_it_goes_when_the_newer_is_whole() {
    for found in [true, false] {
        let scene = Scene::new();
        let (older, newer) = (scene.watch(), scene.watch());
        scene.add("old", &older);
        scene.cache.supersede(&scene.url, &scene.url, &newer).await;
        assert_eq!(
            scene.body().await.as_deref(),
            Some(&b"old"[..]),
            "while the newer is on its way"
        );
        if found {
            scene.cache.outdate(&scene.url, &scene.url, &newer);
        } else {
            scene.cache.outdate_others(&scene.url, &scene.url, &newer);
        }
        assert_eq!(scene.body().await, None);
    }
}

#[tokio::test]
async fn what_is_superseded_goes_with_the_first_newer_response_that_is_whole() {
    for in_parts in [true, false] {
        let scene = Scene::new();
        scene.add("old", &scene.watch());
        let (newer, newest) = (scene.watch(), scene.watch());
        scene.cache.supersede(&scene.url, &scene.url, &newest).await;
        if in_parts {
            scene.cache.outdate(&scene.url, &scene.url, &newer);
        } else {
            scene.cache.vacate(&scene.url, &scene.url, &newer);
        }
        assert_eq!(scene.body().await, None, "in parts: {in_parts}");
    }
}

#[tokio::test]
async fn what_was_written_before_the_watch_and_after_the_look_up_goes_too() {
    let scene = Scene::new();
    let (older, looked) = (scene.watch(), scene.cache.epoch(&scene.url));
    scene.add("old", &older);
    let newer = scene.cache.watch_since(&scene.url, looked);
    scene.cache.outdate_others(&scene.url, &scene.url, &newer);
    assert_eq!(scene.body().await, None);
}

#[tokio::test]
async fn what_the_store_would_not_forget_does_not_come_back() {
    for temper in [Temper::Busy, Temper::Silent] {
        let scene = Scene::new();
        scene.add("old", &scene.watch());
        scene.store.set_removals(temper);
        scene.cache.invalidate(&scene.url, &scene.counters).await;
        assert_eq!(scene.body().await, None, "{temper:?}");
        scene.add("new", &scene.watch());
        scene.forget_memory();
        assert_eq!(
            scene.body().await.as_deref(),
            Some(&b"new"[..]),
            "{temper:?}: replaced, so it can be trusted"
        );
    }
}

#[tokio::test]
async fn variants_are_kept_apart_and_an_invalidation_takes_all_of_them() {
    let scene = Scene::new();
    let request = |language: &str| {
        let mut headers = Headers::new();
        headers.append("Accept-Language", language);
        headers
    };
    let vary = || Vary::from_names(["accept-language".to_owned()]);
    let add = |language: &str, body: &'static str, in_force: Option<&VaryList>| {
        let (list, has_new_list) = scene.cache.list_for(vary(), in_force);
        let key = scene.url.variant(&list, &list.vary.key(&View(&request(language))));
        let (watch, stored) = (scene.watch(), Scene::response(&key, body));
        let placement = Placement { key, list: Some(list.clone()), has_new_list };
        scene.cache.add(&scene.url, &placement, &stored, watch.fetched(), &scene.counters);
        list
    };
    let list = add("en", "hello", None);
    add("de", "hallo", Some(&list));
    scene.forget_memory();
    assert_eq!(scene.get(&request("de")).await.as_deref(), Some(&b"hallo"[..]));
    assert_eq!(scene.get(&request("en")).await.as_deref(), Some(&b"hello"[..]));
    assert_eq!(scene.get(&request("fr")).await, None);
    scene.cache.invalidate(&scene.url, &scene.counters).await;
    add("en", "hi", None);
    assert_eq!(scene.get(&request("en")).await.as_deref(), Some(&b"hi"[..]));
    assert_eq!(scene.get(&request("de")).await, None, "a variant outlived its list");
}

#[tokio::test]
async fn a_hard_purge_holds_in_memory_and_in_the_store_and_for_a_fill_under_way() {
    let scene = Scene::new();
    let watch = scene.watch();
    scene.add("old", &watch);
    assert!(scene.cache.may_join(&scene.url, None, watch.epoch));
    scene.purge(Strength::Hard);
    assert_eq!(scene.body().await, None);
    assert!(!scene.cache.may_join(&scene.url, None, watch.epoch), "no request may join that fill");
    scene.add("old too", &watch);
    assert_eq!(scene.body().await, None, "from memory");
    scene.add("old too", &watch);
    scene.forget_memory();
    assert_eq!(scene.body().await, None, "from the store");
    scene.add("new", &scene.watch());
    assert_eq!(scene.body().await.as_deref(), Some(&b"new"[..]));
    scene.forget_memory();
    assert_eq!(scene.body().await.as_deref(), Some(&b"new"[..]));
}

#[tokio::test]
async fn a_soft_purge_makes_stale_and_takes_nothing() {
    let scene = Scene::new();
    let lifetime = async || match scene.cache.in_memory(&scene.url, &Headers::new()) {
        InMemory::Found(Found::Response(stored, _)) => Some(stored.lifetime),
        InMemory::Ask(key, list) => {
            match scene
                .cache
                .in_store(&scene.url, &scene.watch(), key, list, &Headers::new(), &scene.counters)
                .await
            {
                Found::Response(stored, _) => Some(stored.lifetime),
                Found::Varies(_) | Found::Nothing | Found::Unknown => None,
            }
        }
        InMemory::Found(_) => None,
    };
    let mut head = ResponseHead::new(200);
    head.headers.append("Cache-Control", "max-age=1000000000");
    let add = || {
        let times = StoredTimes { received: WallTime(2000), initial_age: 0 };
        let (key, body) = (scene.url.text.clone(), StoredBody::Whole(Bytes::new()));
        let watch = scene.watch();
        let stored = Arc::new(Stored::new(key, &head, Policy::default(), times, 0, body));
        let placement = scene.url.clone().into();
        scene.cache.add(&scene.url, &placement, &stored, watch.fetched(), &scene.counters);
    };
    add();
    assert_eq!(lifetime().await, Some(1_000_000_000));
    scene.purge(Strength::Soft);
    assert_eq!(
        lifetime().await,
        Some(3),
        "from memory: fresh from second 2 until it was purged in second 5"
    );
    scene.forget_memory();
    assert_eq!(lifetime().await, Some(3), "from the store");
    assert_eq!(lifetime().await, Some(3), "from memory again");
    add();
    assert_eq!(lifetime().await, Some(1_000_000_000), "confirmed or fetched again");
}
