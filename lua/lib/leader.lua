-- The one node that leads, and its term. A leader writes nothing without its term being the one that stands here: so of
-- two that believe they lead, one is refused.

local leader = {}

-- Nobody may lead for longer without another word.
local TTL_MAX_MS = 60000

function leader.length(text)
  return args.number(text, 'ttl_ms', 1, TTL_MAX_MS)
end

-- Who leads, or led last: `node` is nil when nobody does now.
function leader.read(now)
  local found = redis.call('HMGET', keys.leader, 'node', 'term', 'until', 'since')
  local ends = record.number(found[3], 0)
  local lives = found[1] and found[1] ~= '' and ends > now
  return {
    node = lives and found[1] or nil,
    term = record.grown(found[2]),
    ends = ends,
    since = found[4],
  }
end

-- Whether this node leads in this term, now. What only a leader may write asks first.
function leader.holds(node, term, now)
  local this = leader.read(now)
  return this.node == node and clock.text(this.term) == term
end

-- Leads on, or begins to if nobody does. A record that reaches beyond any term we give is none of ours, or of a clock
-- that went back: it blocks no election for longer than a term.
function leader.seek(this, node, ttl_ms, now)
  if this.node and this.ends > now + TTL_MAX_MS then
    this.node = nil
  end
  if this.node and this.node ~= node then
    return
  end
  if not this.node then
    this.node, this.term, this.since = node, math.max(this.term + 1, now), clock.text(now)
  end
  this.ends = now + ttl_ms
  local term, ends = clock.text(this.term), clock.text(this.ends)
  redis.call('HSET', keys.leader, 'node', node, 'term', term, 'until', ends, 'since', this.since or clock.text(now))
end
