import SluiceDoors
import Testing

/// Names of parameters and fields that the gateway doesn't know.
@Suite struct HTTPNamesTests {
  private let stage: HTTPStage

  init() throws {
    stage = try HTTPStage()
  }

  @Test(arguments: [
    ("GET /topics", "limmit=3", "did you mean 'limit'? There are after, limit"),
    ("GET /topics/t", "untill=live", "did you mean 'until'? There are count, cursor, demand,"),
    ("HEAD /topics/t", "untill=live", ""), ("GET /topics/t", "_=123", "here; there are count, cursor,"),
    ("POST /topics/t", "akc=none", "did you mean 'ack'? There are ack, lines"),
    ("PUT /topics/t", "flwo=free", "did you mean 'flow'?"), ("PATCH /topics/t", "flwo=free", "'flow'"),
    ("DELETE /topics/t", "force", "the request has no parameter"),
    ("GET /topics/t/settings", "all", "the request has no parameter"),
    ("POST /topics/t/trim", "form=3", "did you mean 'from'? There are before, keep-last, from, newest"),
    ("POST /topics/t/request", "time-out=3s", "did you mean 'timeout'?"),
    ("POST /topics/t/request", "lines", "there are timeout"),
    ("GET /topics/t/requests", "conut=3", "did you mean 'count'?"),
    ("POST /topics/t/cursors/c", "form=new", "did you mean 'from'?"),
    ("DELETE /topics/t/cursors/c", "from=new", "the request has no parameter"),
    ("POST /topics/t/groups/g/next", "deadlien=3s", "did you mean 'deadline'?"),
    ("POST /topics/t/groups/g/ack", "members=x", "did you mean 'member'?"),
    ("POST /replies/_inbox.x/31", "ack=none", "the request has no parameter"),
  ])
  func anUnknownParameterIsRefused(line: String, query: String, advice: String) {
    _ = stage.publish("t", "1")
    let answer = stage.ask("\(line)?\(query)")
    #expect(answer.status == 400, "\(answer)")
    let name = query.prefix { $0 != "=" }
    #expect(line.hasPrefix("HEAD") || answer.body.contains("'\(name)'"), "\(answer)")
    #expect(answer.body.contains(advice), "\(answer)")
    // The requests had no effect.
    #expect(stage.ask("GET /topics/t/settings").body.contains("\"records\":1,"))
  }

  @Test(arguments: ["from=new&from=earliest", "from=new&from=new", "until=live&until=live"])
  func aParameterThatComesTwiceIsRefused(query: String) {
    _ = stage.publish("t", "1")
    let answer = stage.ask("GET /topics/t?\(query)")
    #expect(answer.status == 400 && answer.body.contains("comes twice"), "\(answer)")
  }

  @Test func conditionsMayComeTwice() {
    _ = stage.publish("t", "1", "Sluice-Header-A: 1", "Sluice-Header-B: 2")
    let answer = stage.ask("GET /topics/t?header=a&header=b&until=live")
    #expect(answer.status == 200 && answer.body.contains("\"payload\":\"1\""), "\(answer)")
  }

  @Test(arguments: [
    ("POST /topics/t", "Sluice-Kye: k", "did you mean 'Sluice-Key'?"),
    ("POST /topics/t", "sluice-headers-a: k", "Sluice-Header-NAME"),
    ("POST /topics/t", "Sluice-Header-: k", "there is no field 'Sluice-Header-' here"),
    ("POST /topics/t/request", "Sluice-Keyy: k", "did you mean 'Sluice-Key'?"),
    ("GET /topics/t", "Sluice-Key: k", "the request has no field that begins with Sluice-"),
    ("POST /topics/t/groups/g/ack", "Sluice-Member: k", "no field that begins with Sluice-"),
  ])
  func anUnknownFieldOfTheDoorIsRefused(line: String, field: String, advice: String) {
    _ = stage.publish("t", "1")
    let answer = stage.ask(line, "x", field)
    #expect(answer.status == 400 && answer.body.contains(advice), "\(answer)")
    #expect(stage.ask("GET /topics/t/settings").body.contains("\"records\":1,"))
  }

  @Test func aKeyThatComesTwiceIsRefused() {
    let answer = stage.publish("t", "1", "Sluice-Key: a", "sluice-key: b")
    #expect(answer.status == 400 && answer.body.contains("comes twice"), "\(answer)")
    // Fields of HTTP and of proxies aren't meant for the gateway.
    #expect(stage.publish("t", "1", "X-Sluice: b", "Sluice: c", "X-Request-Id: 1").status == 200)
  }
}
