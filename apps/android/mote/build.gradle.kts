import org.jetbrains.kotlin.gradle.dsl.JvmTarget
import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    id("com.android.library")
    kotlin("android")
    kotlin("plugin.serialization")
    id("org.jetbrains.dokka")
    `maven-publish`
}

val repository = rootDir.parentFile.parentFile

// What scripts/build_android_library.sh has made, in the folders that the plugin wants.
val nativeLibraries = tasks.register<Sync>("nativeLibraries") {
    into(layout.buildDirectory.dir("jniLibs"))
    for ((abi, preset) in listOf("arm64-v8a" to "android-arm64", "x86_64" to "android-x86_64")) {
        from(repository.resolve("build/$preset/apps/android/mote/src/main/cpp/libmote.so")) { into(abi) }
    }
}

android {
    namespace = "ai.mote.android"
    compileSdk = 36
    defaultConfig {
        minSdk = 26
        consumerProguardFiles("src/android/consumer-rules.pro")
    }
    sourceSets["main"].apply {
        manifest.srcFile("src/android/AndroidManifest.xml")
        java.setSrcDirs(listOf("src/main/java", "src/android/java"))
        kotlin.setSrcDirs(listOf("src/main/kotlin", "src/android/kotlin"))
        jniLibs.setSrcDirs(listOf(layout.buildDirectory.dir("jniLibs")))
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    publishing { singleVariant("release") { withSourcesJar() } }
}

kotlin {
    explicitApi()
    compilerOptions {
        jvmTarget = JvmTarget.JVM_1_8
        languageVersion = KotlinVersion.KOTLIN_2_0
        apiVersion = KotlinVersion.KOTLIN_2_0
    }
}

tasks.named("preBuild") { dependsOn(nativeLibraries) }

dependencies {
    api("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.9.0")
    compileOnly("org.jetbrains.kotlinx:kotlinx-serialization-json:1.7.3")
}

publishing {
    publications {
        register<MavenPublication>("release") {
            groupId = "ai.mote"
            artifactId = "mote-android"
            version = providers.gradleProperty("version").getOrElse("0.0.0")
            afterEvaluate { from(components["release"]) }
        }
    }
}
