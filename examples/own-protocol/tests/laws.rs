//! The protocol keeps the laws that Explicate's own protocols keep.

#[test]
fn it_keeps_the_laws() {
    own_protocol::register().unwrap();
    explicate_laws::check("aimd");
}
