use std::{cell::RefCell, collections::VecDeque, time::Instant};

use super::*;

const API: Api = Api::new("ec2:DescribeInstances", "ec2:DescribeInstances", 20, 100);

fn refused(remedy: Remedy) -> Result<Page<u32>, Refused> {
    Err(Refused { why: Failure { kind: FailureKind::Provider, message: format!("{remedy:?}") }, remedy })
}

fn page(items: &[u32], next: Option<&str>) -> Result<Page<u32>, Refused> {
    Ok((items.to_vec(), next.map(str::to_owned)))
}

/// What a list came to, with each page's token and the credentials that it was asked with.
struct Read {
    listed: Result<Vec<u32>, String>,
    asked: Vec<(Option<String>, u64)>,
}

impl Read {
    fn tokens(&self) -> Vec<&str> {
        self.asked.iter().map(|(token, _)| token.as_deref().unwrap_or("-")).collect()
    }

    fn keys(&self) -> Vec<u64> {
        self.asked.iter().map(|(_, key)| *key).collect()
    }
}

async fn read(answers: Vec<Result<Page<u32>, Refused>>) -> Read {
    let answers = RefCell::new(VecDeque::from(answers));
    let asked = RefCell::new(Vec::new());
    let limiter = Limiter::new(API);
    let credentials = Generation::default();
    let retry = RetryPolicy { attempts: 3, base_wait: Duration::from_millis(1), ..RetryPolicy::default() };
    let reader = Reader { limiter: &limiter, credentials: &credentials, retry: &retry, setting: "aws.listing_timeout" };
    let call = |token: Option<String>| {
        asked.borrow_mut().push((token, credentials.current()));
        std::future::ready(answers.borrow_mut().pop_front().expect("no more calls than answers"))
    };
    let listed = reader.pages(API, |_| (), call).await.map_err(|why| why.to_string());
    assert!(answers.borrow().is_empty(), "answers are left: {answers:?}");
    Read { listed, asked: asked.into_inner() }
}

#[tokio::test]
async fn pages_are_joined_in_their_order() {
    let read = read(vec![page(&[1, 2], Some("a")), page(&[], Some("b")), page(&[3], Some(""))]).await;
    assert_eq!(read.listed, Ok(vec![1, 2, 3]), "an empty page is not the last one, an empty token is no token");
    assert_eq!(read.tokens(), ["-", "a", "b"]);
}

#[tokio::test]
async fn what_time_may_heal_is_asked_again_with_the_same_token() {
    let read = read(vec![
        page(&[1], Some("a")),
        refused(Remedy::Again),
        refused(Remedy::Slower),
        page(&[2], Some("b")),
        refused(Remedy::Again),
        page(&[3], None),
    ])
    .await;
    assert_eq!(read.listed, Ok(vec![1, 2, 3]), "attempts are counted for each page");
    assert_eq!(read.tokens(), ["-", "a", "a", "a", "b", "b"]);
    assert!(read.keys().iter().all(|key| *key == 0));
}

#[tokio::test]
async fn attempts_end() {
    let read = read(vec![refused(Remedy::Again), refused(Remedy::Slower), refused(Remedy::Again)]).await;
    assert_eq!(read.listed, Err("provider error: Again".to_owned()));
}

#[tokio::test]
async fn expired_credentials_are_renewed_once_for_the_same_page() {
    let first = read(vec![page(&[1], Some("a")), refused(Remedy::NewCredentials), page(&[2], None)]).await;
    assert_eq!(first.listed, Ok(vec![1, 2]));
    assert_eq!((first.tokens(), first.keys()), (vec!["-", "a", "a"], vec![0, 0, 1]));

    let never = read(vec![refused(Remedy::NewCredentials), refused(Remedy::NewCredentials)]).await;
    assert_eq!(never.listed, Err("provider error: NewCredentials".to_owned()));
}

#[tokio::test]
async fn a_token_that_is_not_taken_any_more_starts_the_list_again_once() {
    let stale = || vec![page(&[1], Some("a")), refused(Remedy::NewList)];
    let healed = read([stale(), vec![page(&[1], Some("a")), page(&[2], None)]].concat()).await;
    assert_eq!(healed.listed, Ok(vec![1, 2]), "nothing is listed twice, and the same token may come again");
    assert_eq!(healed.tokens(), ["-", "a", "-", "a"]);

    let not_healed = read([stale(), stale()].concat()).await;
    assert_eq!(not_healed.listed, Err("provider error: NewList".to_owned()));

    let without_a_token = read(vec![refused(Remedy::NewList)]).await;
    assert!(without_a_token.listed.is_err(), "the first page has no token to blame");
}

#[tokio::test]
async fn what_nothing_heals_is_asked_once() {
    let read = read(vec![page(&[1], Some("a")), refused(Remedy::None)]).await;
    assert_eq!(read.listed, Err("provider error: None".to_owned()), "and no half list is given");
}

#[tokio::test]
async fn a_token_that_comes_twice_ends_the_list() {
    let read = read(vec![page(&[1], Some("a")), page(&[2], Some("b")), page(&[1], Some("a"))]).await;
    assert_eq!(read.listed, Err("malformed answer: a page token came twice".to_owned()));
}

#[tokio::test]
async fn a_list_without_an_end_is_cut_off() {
    let limiter = Limiter::new(API);
    let credentials = Generation::default();
    let retry = RetryPolicy { listing_timeout: Duration::from_millis(50), ..RetryPolicy::default() };
    let reader = Reader { limiter: &limiter, credentials: &credentials, retry: &retry, setting: "aws.listing_timeout" };
    let number = RefCell::new(0);
    let call = |_| {
        *number.borrow_mut() += 1;
        let next = format!("{}", number.borrow());
        async move { page(&[], Some(&next)) }
    };
    let began = Instant::now();
    let why = reader.pages(API, |_| (), call).await.expect_err("no end");
    assert_eq!(why.kind, FailureKind::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
