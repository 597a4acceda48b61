//! Sends a script's requests to a server, one after the other.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::script::{Script, Step};

/// How long an event may take; both servers send one at once.
const LIMIT: Duration = Duration::from_secs(60);

/// What a step was answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status; 0 for what is no request.
    pub code: u16,
    /// The documents of the body.
    pub documents: Vec<Value>,
}

/// A watch that goes on.
#[derive(Default)]
struct Open {
    body: Option<Body>,
    text: String,
}

/// The answers to a script, in a namespace of its own.
pub async fn answers(client: &Client, script: &Script, namespace: &str) -> Vec<Answer> {
    let made = json!({"metadata": {"name": namespace}});
    let step = Step {
        text: String::new(),
        method: "POST".to_owned(),
        path: "/api/v1/namespaces".to_owned(),
        words: Vec::new(),
        body: made,
    };
    assert_eq!(send(client, &step, &[], "").await.0, 201, "{}: the namespace was not created", script.name);
    let mut answers: Vec<Answer> = Vec::new();
    let mut open = Open::default();
    for step in &script.steps {
        let answer = match step.method.as_str() {
            "READ" => Answer { code: 0, documents: read(&mut open, step.count()).await },
            "OPEN" => {
                let (code, body) = send(client, step, &answers, namespace).await;
                open = Open { body: Some(body), text: String::new() };
                Answer { code, documents: Vec::new() }
            }
            _ => {
                let (code, body) = send(client, step, &answers, namespace).await;
                let mut whole = Open { body: Some(body), text: String::new() };
                Answer { code, documents: read(&mut whole, step.count()).await }
            }
        };
        answers.push(answer);
    }
    answers
}

async fn send(client: &Client, step: &Step, before: &[Answer], namespace: &str) -> (u16, Body) {
    let path = filled(&step.path, before, namespace);
    let (method, path) = match step.method.as_str() {
        "WATCH" | "OPEN" => {
            ("GET", format!("{path}{}watch=true", if path.contains('?') { '&' } else { '?' }))
        }
        method => (method, path),
    };
    let body =
        if step.body.is_null() { String::new() } else { filled(&step.body.to_string(), before, namespace) };
    let content_type =
        step.words.iter().map(String::as_str).find_map(media_type).unwrap_or("application/json");
    let accept = if step.has("metadata") {
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    } else if step.has("listed-metadata") {
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    } else {
        "application/json"
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", accept)
        .body(Body::from(body.into_bytes()));
    let response = client.send(request.unwrap()).await.unwrap();
    (response.status().as_u16(), response.into_body())
}

fn media_type(word: &str) -> Option<&'static str> {
    match word {
        "merge" => Some("application/merge-patch+json"),
        "json" => Some("application/json-patch+json"),
        "strategic" => Some("application/strategic-merge-patch+json"),
        "apply" => Some("application/apply-patch+yaml"),
        "text" => Some("text/plain"),
        _ => None,
    }
}

/// The text with the values of earlier answers.
fn filled(text: &str, before: &[Answer], namespace: &str) -> String {
    let mut filled = String::new();
    let mut parts = text.split("{{");
    filled.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (place, rest) = part.split_once("}}").unwrap();
        let (step, path) = place.split_once('.').unwrap();
        let answer = &before[step.parse::<usize>().unwrap() - 1].documents[0];
        let value = path.split('.').fold(answer, |at, key| &at[key]);
        filled.push_str(value.as_str().unwrap_or_else(|| panic!("{place} is {value} in {answer}")));
        filled.push_str(rest);
    }
    filled.replace("NS", namespace)
}

/// The next documents of a body: this many, or all.
async fn read(open: &mut Open, count: Option<usize>) -> Vec<Value> {
    let mut documents = Vec::new();
    while count.is_none_or(|it| documents.len() < it) {
        let is_line = count.is_some() || open.text.starts_with("{\"type\"");
        if let Some((line, rest)) = open.text.split_once('\n').filter(|_| is_line) {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            documents.push(document(&line));
            open.text = rest;
            continue;
        }
        let body = open.body.as_mut().expect("a watch is open");
        let frame = tokio::time::timeout(LIMIT, body.frame()).await;
        match frame.unwrap_or_else(|_| panic!("{documents:?}, and no event more")) {
            Some(frame) => {
                let bytes = frame.unwrap().into_data().unwrap_or_default();
                open.text.push_str(std::str::from_utf8(&bytes).unwrap());
            }
            None => break,
        }
    }
    if count.is_none() && !open.text.is_empty() {
        documents.push(document(&open.text));
        open.text.clear();
    }
    documents
}

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!({"text": text.trim()}))
}
