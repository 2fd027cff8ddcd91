// A server in Rust: users and their sessions hold each other by Rc, and neither is ever dropped
// truth: leak
use std::cell::RefCell;
use std::rc::{Rc, Weak};

struct User {
    name: String,
    session: RefCell<Option<Rc<Session>>>,
}

struct Session {
    data: Vec<u8>,
    user: Option<Rc<User>>,
    back: Weak<User>,
}

fn login(number: usize, weak: bool) -> Rc<User> {
    let user = Rc::new(User { name: format!("user {}", number).repeat(20), session: RefCell::new(None) });
    let data = vec![number as u8; 30000];
    let strong = if weak { None } else { Some(user.clone()) };
    let session = Rc::new(Session { data, user: strong, back: Rc::downgrade(&user) });
    *user.session.borrow_mut() = Some(session);
    user
}

fn main() {
    let weak = std::env::args().any(|a| a == "twin");
    let mut total = 0;
    for number in 0..3000 {
        let user = login(number, weak);
        let page = vec![b'x'; 20000];
        let session = user.session.borrow();
        let s = session.as_ref().unwrap();
        total += page.len() + s.data.len() + user.name.len() + s.user.is_some() as usize + s.back.strong_count();
    }
    println!("{}", total);
}
