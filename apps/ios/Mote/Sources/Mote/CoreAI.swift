import CMote
import MoteCoreAI

/// Lets the core run files for Core AI, where this system has it.
let usesCoreAI: Void = {
    #if canImport(CoreAI)
    mote_coreai_use(moteCoreAIRuntime()?.assumingMemoryBound(to: mote_coreai_runtime.self))
    #endif
}()
