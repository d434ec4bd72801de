//! Tests the check of credentials: its results, the remembered results, and the queues of clients.

use super::*;
use crate::core::users::{password_line, token_line};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

const ALICE: &str = "Basic YWxpY2U6b3BlbiBzZXNhbWU=";

fn fields(values: &[&str]) -> Headers {
    let mut headers = Headers::new();
    values.iter().for_each(|value| headers.append("Proxy-Authorization", value));
    headers
}

fn client(number: u8) -> ClientBlock {
    IpAddr::from([192, 0, 2, number]).into()
}

fn book(lines: &[&str]) -> UserBook {
    UserBook::read(&lines.join("\n")).expect("sound")
}

fn alice(password: &str) -> String {
    password_line("alice", password.as_bytes()).expect("a line")
}

fn with_book(book: UserBook) -> (Authenticator, Live<Option<UserBook>>) {
    let live = Live::from(Some(book));
    (Authenticator::new(live.clone()), live)
}

/// Returns how many right and how many wrong credentials the authenticator remembers.
fn checked(authenticator: &Authenticator) -> (usize, usize) {
    let remembered = lock(&authenticator.remembered);
    (remembered.right.len(), remembered.wrong.len())
}

fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

#[tokio::test]
async fn only_right_credentials_name_a_user() {
    let (token, machine) = token_line("ci").expect("a line");
    let (authenticator, _) = with_book(book(&[&alice("open sesame"), &machine]));
    let bearer = format!("bearer  {token}");
    for (values, expected) in [
        (&[ALICE][..], Some("alice")),
        (&[&bearer], Some("ci")),
        (&[&basic("ci", &token)], Some("ci")),
        (&[&basic("alice", &token)], None),
        (&[&basic("alice", "open sesam")], None),
        (&[&basic("bob", "open sesame")], None),
        (&[&basic("", "")], None),
        (&["Bearer open sesame"], None),
        (&["Digest x"], None),
        (&["Basic !"], None),
        (&["Basic"], None),
        (&[ALICE, ALICE], None),
        (&[], None),
    ] {
        let user = authenticator.user(&fields(values), client(1)).await;
        assert_eq!(user.as_deref(), expected.ok_or(&NoUser::Credentials), "{values:?}");
    }
}

#[tokio::test]
async fn a_result_is_remembered_until_the_users_line_changes() {
    let (authenticator, live) = with_book(book(&[&alice("open sesame")]));
    for _ in 0..3 {
        assert!(authenticator.user(&fields(&[ALICE]), client(1)).await.is_ok());
    }
    assert_eq!(checked(&authenticator), (1, 0));
    live.replace(Some(book(&[&alice("new")])));
    for _ in 0..3 {
        assert!(authenticator.user(&fields(&[ALICE]), client(1)).await.is_err());
    }
    assert_eq!(checked(&authenticator), (1, 1));
    assert!(authenticator.user(&fields(&[&basic("alice", "new")]), client(1)).await.is_ok());
    live.replace(Some(UserBook::default()));
    assert!(authenticator.user(&fields(&[&basic("alice", "new")]), client(1)).await.is_err());
    assert!(!authenticator.knows("alice"));
}

#[tokio::test]
async fn another_client_waits_for_one_of_many_wrong_tries() {
    let (authenticator, _) = with_book(book(&[&alice("open sesame")]));
    let authenticator = Arc::new(authenticator);
    let tries: Vec<_> = (0..100)
        .map(|number| {
            let authenticator = Arc::clone(&authenticator);
            let wrong = fields(&[&basic("alice", &number.to_string())]);
            tokio::spawn(async move { authenticator.user(&wrong, client(1)).await })
        })
        .collect();
    while authenticator.checks.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    let user = authenticator.user(&fields(&[ALICE]), client(2)).await;
    tries.iter().for_each(tokio::task::JoinHandle::abort);
    assert_eq!(user.as_deref(), Ok("alice"));
    let (_, wrong) = checked(&authenticator);
    assert!(wrong <= 2, "{wrong} of 100 wrong tries were checked first");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_too_long_for_its_check_is_refused() {
    let (authenticator, _) = with_book(book(&[&alice("open sesame")]));
    let running = Arc::clone(&authenticator.checks).acquire_owned().await.expect("open");
    let refused = authenticator.user(&fields(&[ALICE]), client(1)).await;
    assert_eq!(refused.err(), Some(NoUser::Busy));
    assert!(lock(&authenticator.queues.0).is_empty(), "the request left the queue");
    drop(running);
    tokio::time::resume();
    assert!(authenticator.user(&fields(&[ALICE]), client(1)).await.is_ok());
}

#[tokio::test]
async fn checks_of_a_guesser_delay_no_other_client() {
    let (authenticator, _) = with_book(book(&[&alice("open sesame")]));
    for number in 0..WRONG_TRIES_OF_GUESSER {
        let wrong = fields(&[&basic("alice", &number.to_string())]);
        assert!(authenticator.user(&wrong, client(1)).await.is_err());
    }
    let one_runs = Arc::clone(&authenticator.guesses).acquire_owned().await.expect("open");
    let right = fields(&[ALICE]);
    let mut of_guesser = Box::pin(authenticator.user(&right, client(1)));
    assert!(poll(&mut of_guesser).is_pending());
    assert_eq!(authenticator.checks.available_permits(), CHECKS_AT_ONCE);
    let user = authenticator.user(&fields(&[&basic("bob", "x")]), client(2)).await;
    assert_eq!(user, Err(NoUser::Credentials));
    drop(one_runs);
    assert_eq!(of_guesser.await.as_deref(), Ok("alice"));
    assert!(!lock(&authenticator.remembered).is_guesser(client(1)), "the password was right");
}

#[tokio::test]
async fn the_queue_of_a_client_has_a_limit_and_ends_with_its_last_request() {
    let (authenticator, _) = with_book(UserBook::default());
    let _none_runs = Arc::clone(&authenticator.checks).acquire_owned().await.expect("open");
    let ask = |number: u8, name: &str| {
        let (authenticator, headers) = (&authenticator, fields(&[&basic(name, "x")]));
        Box::pin(async move { authenticator.user(&headers, client(number)).await })
    };
    let names = (0..MAX_WAITING_OF_CLIENT).map(|number| number.to_string());
    let mut waiting: Vec<_> = names.map(|name| ask(1, &name)).collect();
    assert!(waiting.iter_mut().all(|future| poll(future).is_pending()));
    assert_eq!(poll(&mut ask(1, "more")), Poll::Ready(Err(NoUser::Busy)));
    let mut other = ask(2, "other");
    assert!(poll(&mut other).is_pending());
    waiting.pop();
    assert!(poll(&mut ask(1, "more")).is_pending());
    drop((waiting, other));
    assert!(lock(&authenticator.queues.0).is_empty());
}
