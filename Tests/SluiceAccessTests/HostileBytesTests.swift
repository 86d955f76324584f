import TestSupport
import Testing

@Suite("Hostile tokens and files")
struct HostileBytesTests {
  /// Useful starting points for mutations.
  private static let seeds: [AccessProbe.Target: [String]] = [
    .tokens: ["eyJhbGciOiJIUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJhIiwiZXhwIjo5ZTl9.AAAA", "e30.e30.", ".."],
    .tokenClaims: [
      #"{"sub":"alice","exp":9000000000,"nbf":0,"iat":1.5,"aud":["sluice","x"],"sluice":{"publish":["orders.>"],"admin":["*"]}}"#,
      #"{"exp":9e9,"sub":"é😀\u0041\ud83d\ude00","x":[[{}],null,true,-1e-3,"\\"]}"#,
    ],
    .tokenHeaders: [
      #"{"alg":"HS256","kid":"k","typ":"JWT","crit":[]}"#, #"{"kid":"k","alg":"none","x":[1]}"#,
    ],
    .usersFiles: [
      """
      # Users
      alice:$scrypt$ln=15,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA

      somebody new:$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA

      """
    ],
    .permissionsFiles: [
      "# x\nalice publish,create orders.> a\n\"Alice \\\"S\\\"\" all smith.> \"#x\"\n* subscribe >\n"
    ],
  ]

  @Test(
    "whatever comes is taken or refused, and nothing else happens", arguments: AccessProbe.Target.allCases)
  func mutations(_ target: AccessProbe.Target) throws {
    var random = SeededRandom.printed()
    let seeds = try #require(Self.seeds[target]).map { Array($0.utf8) }
    for seed in seeds { try AccessProbe.run(target, on: seed) }
    for round in 0..<1_500 {
      var bytes =
        round % 10 == 0
        ? random.bytes(Int.random(in: 0..<200, using: &random)) : seeds.randomElement(using: &random)!
      for _ in 0..<Int.random(in: 1...4, using: &random) { Self.mutate(&bytes, using: &random) }
      do {
        try AccessProbe.run(target, on: bytes)
      } catch {
        Issue.record("\(error), of \(bytes)")
        return
      }
    }
  }

  private static func mutate(_ bytes: inout [UInt8], using random: inout SeededRandom) {
    guard let place = bytes.indices.randomElement(using: &random) else {
      return bytes.append(UInt8.random(in: 0...255, using: &random))
    }
    switch Int.random(in: 0..<7, using: &random) {
    case 0: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: bytes[place] = UInt8.random(in: 0...255, using: &random)
    case 2: bytes.remove(at: place)
    case 3: bytes.insert(bytes[place], at: place)
    case 4: bytes.removeSubrange(place...)
    case 5: bytes.insert(contentsOf: bytes[place...].prefix(20), at: place)
    default: bytes.insert(Array("{}[]\",:.\\#*> \n\t0-e$=".utf8).randomElement(using: &random)!, at: place)
    }
  }
}
