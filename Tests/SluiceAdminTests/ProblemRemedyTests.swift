import SluiceBroker
import Testing

@Suite struct ProblemRemedyTests {
  @Test(arguments: Problem.Kind.allCases)
  func aRemedyHasNoNameOfAClient(_ kind: Problem.Kind) {
    let place = Problem.Place.consumer("$(cursor)", topic: "$(topic)")
    let remedy = Problem(kind, .warning, at: place, "s", since: 0).remedy
    #expect(remedy?.contains("$(") != true)
    // Those two name what to delete in their sentence.
    let isInSentence = kind == .keptMemoryFull || kind == .keptMemoryShareNearlyFull
    #expect((remedy == nil) == isInSentence)
    #expect(remedy?.hasSuffix(".") != false)
  }
}
