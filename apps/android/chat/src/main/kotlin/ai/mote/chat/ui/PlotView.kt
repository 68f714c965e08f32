package ai.mote.chat.ui

import ai.mote.chat.R
import ai.mote.chat.SpeedPoint
import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.util.AttributeSet
import android.view.View

/** Tokens a second over time, from 0 on. */
class PlotView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private var points = emptyList<SpeedPoint>()
    private val paint = Paint(Paint.ANTI_ALIAS_FLAG).apply {
        style = Paint.Style.STROKE
        strokeWidth = 2 * resources.displayMetrics.density
        color = resources.getColor(R.color.accent, null)
    }

    fun show(next: List<SpeedPoint>) {
        points = next
        val last = next.lastOrNull()
        contentDescription = if (last == null) "" else context.getString(R.string.sustained_result, last.seconds, last.tokensPerSecond)
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        if (points.size < 2) return
        val most = points.maxOf { it.tokensPerSecond } * 1.1
        val isMirrored = layoutDirection == LAYOUT_DIRECTION_RTL
        val path = Path()
        for ((index, point) in points.withIndex()) {
            val along = (point.seconds / points.last().seconds).toFloat()
            val x = width * if (isMirrored) 1 - along else along
            val y = height * (1 - point.tokensPerSecond / most).toFloat()
            if (index == 0) path.moveTo(x, y) else path.lineTo(x, y)
        }
        canvas.drawPath(path, paint)
    }
}
