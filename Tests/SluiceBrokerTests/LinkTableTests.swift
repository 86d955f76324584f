import SluiceTopics
import TestSupport
import Testing

@testable import SluiceBroker

private final class LinkProbe: TabledLink {
  let id: UInt64
  var buffered = 0

  init(_ id: UInt64) { self.id = id }
}

private final class LinksProbe: TabledLinks {
  let key: NodeLinks.Key
  var isIdle = false
  var problem: String?
  var connections: [LinkProbe] = []

  init(_ node: String, as identity: String = "ann", carrying carried: String = "", frame: Int = 1_000) {
    let node = RemoteNode(name: node, address: "\(node):7420")
    key = NodeLinks.Key(node: node, identity: identity, carried: carried, maximumFrame: frame)
  }
}

@Suite("the links of a loop to other nodes")
struct LinkTableTests {
  private var table = LinkTable<LinksProbe>()

  @Test("links are found by all of their key, and stay in the order in which they came")
  mutating func keys() {
    let all = [
      LinksProbe("b"), LinksProbe("c"), LinksProbe("b", as: "bob"), LinksProbe("b", carrying: "read >"),
      LinksProbe("b", frame: 2_000),
    ]
    for links in all { table.add(links) }
    #expect(table.all.map(ObjectIdentifier.init) == all.map(ObjectIdentifier.init))
    for links in all { #expect(table[links.key] === links) }
    #expect(table[LinksProbe("d").key] == nil)
    // A node of the same name at another address is a different one.
    var moved = all[0].key
    moved.node.address = "elsewhere:7420"
    #expect(table[moved] == nil)
  }

  @Test("links without anything to keep are forgotten, and only those")
  mutating func idle() {
    let (first, second, third) = (LinksProbe("b"), LinksProbe("c"), LinksProbe("d"))
    for links in [first, second, third] { table.add(links) }
    table.removeIdle()
    #expect(table.all.count == 3)
    first.isIdle = true
    third.isIdle = true
    table.removeIdle()
    #expect(table.all.map(\.key) == [second.key])
    #expect(table[first.key] == nil && table[third.key] == nil && table[second.key] === second)
    // The next links of the key replace them.
    let next = LinksProbe("b")
    table.add(next)
    #expect(table[first.key] === next)
  }

  @Test("the first problem is told with the node's name, and that of a node whichever client has met it")
  mutating func problems() {
    let (first, second, third) = (LinksProbe("b"), LinksProbe("b", as: "bob"), LinksProbe("c"))
    for links in [first, second, third] { table.add(links) }
    #expect(table.problem == nil)
    #expect(table.problem(of: first.key.node) == nil)
    third.problem = "it is stopping"
    second.problem = "refused"
    #expect(table.problem == "node b: refused")
    #expect(table.problem(of: first.key.node) == "refused")
    #expect(table.problem(of: third.key.node) == "it is stopping")
    #expect(table.problem(of: RemoteNode(name: "d", address: "d:7420")) == nil)
  }

  @Test("links that have something to write are taken once, without those that have closed meanwhile")
  mutating func ready() {
    let links = (1...4).map { LinkProbe($0) }
    for link in links { table.makeReady(link) }
    table.remove(links[1])
    table.remove(LinkProbe(3))
    let taken = table.takeReady().map(\.id)
    #expect(taken == [1, 3, 4])
    let again = table.takeReady().count
    #expect(again == 0)
    table.makeReady(links[0])
    let next = table.takeReady().map(\.id)
    #expect(next == [1])
  }

  @Test("the change of what is buffered is taken once, also where it shrinks")
  mutating func buffered() {
    for change in [100, -30, 5] { table.buffered(change) }
    var taken = [table.takeBuffered(), table.takeBuffered()]
    #expect(taken == [75, 0])
    table.buffered(-75)
    taken = [table.takeBuffered()]
    #expect(taken == [-75])
  }

  @Test("the fullest link is one with bytes, of all nodes")
  mutating func fullest() {
    #expect(table.fullest == nil)
    let (first, second) = (LinksProbe("b"), LinksProbe("c"))
    first.connections = [LinkProbe(1), LinkProbe(2)]
    second.connections = [LinkProbe(3)]
    table.add(first)
    table.add(second)
    #expect(table.fullest == nil)
    first.connections[1].buffered = 7
    second.connections[0].buffered = 9
    #expect(table.fullest?.link == 3 && table.fullest?.bytes == 9)
    second.connections[0].buffered = 0
    #expect(table.fullest?.link == 2 && table.fullest?.bytes == 7)
    #expect(table.connection(3) === second.connections[0])
    #expect(table.connection(4) == nil)
  }

  @Test("any order of changes leaves what a list without an index would have", arguments: 1...40)
  mutating func comparison(seed: UInt64) {
    var random = SeededRandom(seed: seed)
    var model: [LinksProbe] = []
    var ready: [LinkProbe] = []
    var sum = 0
    var number: UInt64 = 0
    for step in 0..<300 {
      switch Int.random(in: 0...8, using: &random) {
      case 0, 1:
        let (node, user) = (Int.random(in: 0...5, using: &random), Int.random(in: 0...3, using: &random))
        let links = LinksProbe("n\(node)", as: "user \(user)")
        // Like the relay, add only links that weren't found.
        let known = model.first { $0.key == links.key }
        #expect(table[links.key] === known, "seed \(seed), step \(step)")
        if known == nil {
          model.append(links)
          table.add(links)
        }
      case 2:
        guard let links = model.randomElement(using: &random) else { continue }
        number += 1
        links.connections.append(LinkProbe(number))
        links.isIdle = false
      case 3:
        guard let links = model.randomElement(using: &random), !links.connections.isEmpty else { continue }
        let link = links.connections.removeFirst()
        table.remove(link)
        ready.removeAll { $0 === link }
        links.isIdle = links.connections.isEmpty
      case 4:
        table.removeIdle()
        model.removeAll(where: \.isIdle)
      case 5:
        guard let link = model.flatMap(\.connections).randomElement(using: &random) else { continue }
        if !ready.contains(where: { $0 === link }) {
          ready.append(link)
          table.makeReady(link)
        }
      case 6:
        guard let link = model.flatMap(\.connections).randomElement(using: &random) else { continue }
        let size = Int.random(in: 0...1_000, using: &random)
        table.buffered(size - link.buffered)
        sum += size - link.buffered
        link.buffered = size
      case 7:
        let taken = table.takeReady().map(\.id)
        #expect(taken == ready.map(\.id), "seed \(seed), step \(step)")
        ready = []
      default:
        let taken = table.takeBuffered()
        #expect(taken == sum, "seed \(seed), step \(step)")
        sum = 0
      }
      let links = model.flatMap(\.connections)
      let most = links.map(\.buffered).max() ?? 0
      #expect(table.fullest?.bytes ?? 0 == most, "seed \(seed), step \(step)")
      for link in links { #expect(table.connection(link.id) === link) }
      #expect(table.all.map(\.key) == model.map(\.key))
    }
  }
}
