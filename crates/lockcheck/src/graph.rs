// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graph of all states: from which states an end can be reached, and by how many paths.

/// The kind of an edge between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A thread made a step.
    Step,
    /// A sleeper woke without cause: no lock may rely on that.
    WakeUp,
    /// The host gave one of two answers: no lock may rely on which.
    Answer,
}

/// The states, by number, the edges between them, and the states in which all threads have ended.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub states: usize,
    pub edges: Vec<(u32, u32, Way)>,
    pub complete: Vec<u32>,
}

/// The neighbours of all states in one array: those of state `s` are `to[start[s]..start[s + 1]]`.
struct Adjacency {
    start: Vec<u32>,
    to: Vec<(u32, Way)>,
}

impl Adjacency {
    fn of(&self, state: u32) -> &[(u32, Way)] {
        &self.to[self.start[state as usize] as usize..self.start[state as usize + 1] as usize]
    }
}

impl Graph {
    fn adjacency(&self, backwards: bool) -> Adjacency {
        let ends = |&(from, to, way): &(u32, u32, Way)| match backwards {
            true => (to, from, way),
            false => (from, to, way),
        };
        let mut start = vec![0u32; self.states + 1];
        for edge in &self.edges {
            start[ends(edge).0 as usize + 1] += 1;
        }
        for state in 0..self.states {
            start[state + 1] += start[state];
        }
        let mut next = start.clone();
        let mut to = vec![(0, Way::Step); self.edges.len()];
        for edge in &self.edges {
            let (near, far, way) = ends(edge);
            to[next[near as usize] as usize] = (far, way);
            next[near as usize] += 1;
        }
        Adjacency { start, to }
    }

    /// The states from which no end can be reached by steps alone, whatever the host answers. A state in which the host
    /// is queried reaches an end only if it does after either answer.
    pub fn hopeless(&self) -> Vec<u32> {
        let backwards = self.adjacency(true);
        let mut answers_missing = vec![2u8; self.states];
        let mut hopeful = vec![false; self.states];
        let mut work = self.complete.clone();
        while let Some(state) = work.pop() {
            if std::mem::replace(&mut hopeful[state as usize], true) {
                continue;
            }
            for &(from, way) in backwards.of(state) {
                match way {
                    Way::Step => work.push(from),
                    Way::WakeUp => {}
                    Way::Answer => {
                        answers_missing[from as usize] -= 1;
                        if answers_missing[from as usize] == 0 {
                            work.push(from);
                        }
                    }
                }
            }
        }
        let states = 0..self.states as u32;
        states.filter(|&state| !hopeful[state as usize]).collect()
    }

    /// The number of paths from state 0 to an end, each strongly connected component taken as one state, and the number
    /// of states in components that have cycles.
    pub fn executions(&self) -> (u128, usize) {
        let forwards = self.adjacency(false);
        let parts = Parts::of(&forwards, self.states);
        let mut is_end = vec![false; self.states];
        for &state in &self.complete {
            is_end[state as usize] = true;
        }
        // Components are numbered against the direction of the edges, so an edge leads to one that is already computed.
        let mut ways = vec![0u128; parts.count];
        let mut circling = 0;
        let mut members: Vec<u32> = (0..self.states as u32).collect();
        members.sort_unstable_by_key(|&state| parts.part[state as usize]);
        for group in members.chunk_by(|a, b| parts.part[*a as usize] == parts.part[*b as usize]) {
            let part = parts.part[group[0] as usize];
            let mut sum = 0u128;
            let mut circles = false;
            for &state in group {
                sum += u128::from(is_end[state as usize]);
                for &(to, _) in forwards.of(state) {
                    let other = parts.part[to as usize];
                    if other == part {
                        circles = true;
                    } else {
                        sum = sum.saturating_add(ways[other as usize]);
                    }
                }
            }
            ways[part as usize] = sum;
            circling += if circles { group.len() } else { 0 };
        }
        let first = parts.part.first().map_or(0, |&part| ways[part as usize]);
        (first, circling)
    }
}

/// Strongly connected components (Tarjan 1972, without recursion).
struct Parts {
    part: Vec<u32>,
    count: usize,
}

impl Parts {
    fn of(forwards: &Adjacency, states: usize) -> Parts {
        const NONE: u32 = u32::MAX;
        let mut part = vec![NONE; states];
        let mut index = vec![NONE; states];
        let mut low = vec![0u32; states];
        let (mut count, mut next_index) = (0u32, 0u32);
        let mut open = Vec::new();
        for root in 0..states as u32 {
            if index[root as usize] != NONE {
                continue;
            }
            let mut path = vec![(root, 0usize)];
            while let Some(&mut (state, ref mut at)) = path.last_mut() {
                let here = state as usize;
                if index[here] == NONE {
                    index[here] = next_index;
                    low[here] = next_index;
                    next_index += 1;
                    open.push(state);
                }
                if let Some(&(to, _)) = forwards.of(state).get(*at) {
                    *at += 1;
                    if index[to as usize] == NONE {
                        path.push((to, 0));
                    } else if part[to as usize] == NONE {
                        low[here] = low[here].min(index[to as usize]);
                    }
                    continue;
                }
                path.pop();
                if let Some(&(parent, _)) = path.last() {
                    low[parent as usize] = low[parent as usize].min(low[here]);
                }
                if low[here] == index[here] {
                    while let Some(member) = open.pop() {
                        part[member as usize] = count;
                        if member == state {
                            break;
                        }
                    }
                    count += 1;
                }
            }
        }
        Parts {
            part,
            count: count as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(states: usize, edges: &[(u32, u32, Way)], complete: &[u32]) -> Graph {
        Graph {
            states,
            edges: edges.to_vec(),
            complete: complete.to_vec(),
        }
    }

    #[test]
    fn a_diamond_has_two_ways_and_a_circle_counts_once() {
        let step = |from, to| (from, to, Way::Step);
        let diamond = [step(0, 1), step(0, 2), step(1, 3), step(2, 3)];
        assert_eq!(graph(4, &diamond, &[3]).executions(), (2, 0));
        let circle = [&diamond[..], &[step(1, 4), step(4, 1), step(4, 3)]].concat();
        let circle = graph(5, &circle, &[3]);
        assert_eq!(circle.executions(), (3, 2));
        assert!(circle.hopeless().is_empty());
    }

    #[test]
    fn hope_rests_neither_on_wake_ups_nor_on_answers() {
        let edges = [
            (0, 1, Way::WakeUp),
            (2, 1, Way::Answer),
            (2, 3, Way::Answer),
            (4, 1, Way::Answer),
            (4, 1, Way::Answer),
        ];
        assert_eq!(graph(5, &edges, &[1]).hopeless(), [0, 2, 3]);
    }
}
