"""The `when` language: patterns of nodes and relations that fire a behavior once they come to hold.

    MATCH (c:Claim)-[:ABOUT]->(q:Question {open: true})
    WHERE c.weight > 2 AND NOT EXISTS { MATCH (c)<-[:REFUTES]-(:Claim) }

    pattern   a node `(v:Label {property: literal, …})`, then relations and nodes in turn; several, separated by commas
    node      each node has a label in one of the places that name it; one without a name, `(:Label)`, is like any other
    relation  `-[:TYPE]->`, `<-[:A|B]-`, `-[r:TYPE]->`, and walks of up to 5 steps, `-[:TYPE*1..3]->`
    WHERE     AND, OR, NOT and brackets over: `v.property` against another or a literal by = <> < <= > >= IN,
              STARTS WITH, ENDS WITH, CONTAINS; `v.property IS [NOT] NULL`; `EXISTS { MATCH … WHERE … }`
    literal   text, numbers, true, false, null, lists of them

It is a part of Cypher and means what the graph engine makes of it, with three differences: retired objects never match;
values of different kinds compare as null instead of being refused; a property or relation type that isn't declared is
null, or joins nothing. As there, two variables may stand for one node, and a walk may pass a relation twice.
"""
